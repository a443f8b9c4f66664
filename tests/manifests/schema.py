"""The schemas of Kubernetes itself, of the oldest and the newest version that is supported."""

from collections.abc import Iterator

import kubernetes_validate

from manifests.rendered import Objects

OLDEST, NEWEST = "1.32", "1.37"
"""The oldest has the label with an instance's number, apps.kubernetes.io/pod-index, for good."""
CUSTOM = {
    ("cert-manager.io/v1", "Certificate"),
    ("cert-manager.io/v1", "Issuer"),
    ("monitoring.coreos.com/v1", "PrometheusRule"),
    ("monitoring.coreos.com/v1", "ServiceMonitor"),
    ("postgresql.cnpg.io/v1", "Cluster"),
    ("sparkoperator.k8s.io/v1beta2", "SparkApplication"),
}
"""Kinds that are not Kubernetes' own. Any other that has no schema is a mistake."""


def the_oldest_version_takes_it(objects: Objects) -> Iterator[str]:
    yield from _refusals(objects, OLDEST)


def the_newest_version_takes_it(objects: Objects) -> Iterator[str]:
    yield from _refusals(objects, NEWEST)


def _refusals(objects: Objects, version: str) -> Iterator[str]:
    for each in objects.all:
        if (each["apiVersion"], each["kind"]) in CUSTOM:
            continue
        what = f"{each['kind']} {each['metadata']['name']}"
        try:
            kubernetes_validate.validate(each, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            yield f"{what}: {error.message}"
        except kubernetes_validate.SchemaNotFoundError:
            yield f"{what}: {version} has no such kind in {each['apiVersion']}"
