"""Schemas: of the oldest and the newest Kubernetes that is supported, and of others' kinds."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import kubernetes_validate
from jsonschema import Draft202012Validator

from manifests.rendered import Object, Objects

OLDEST, NEWEST = "1.32", "1.37"
"""The oldest has the label with an instance's number, apps.kubernetes.io/pod-index, for good."""
CRDS = Path(__file__).parent / "crds"
"""Schemas of kinds that others define: tools/fetch_crd_schemas.py says whose, and writes them."""


def the_oldest_version_takes_it(objects: Objects) -> Iterator[str]:
    yield from _refusals(objects, OLDEST)


def the_newest_version_takes_it(objects: Objects) -> Iterator[str]:
    yield from _refusals(objects, NEWEST)


def those_who_define_it_take_it(objects: Objects) -> Iterator[str]:
    for each in objects.all:
        custom = _custom(each["apiVersion"], each["kind"])
        if custom is not None:
            for error in custom.iter_errors(each):
                yield f"{_what(each)}: {error.json_path}: {error.message}"


def _refusals(objects: Objects, version: str) -> Iterator[str]:
    for each in objects.all:
        is_custom = _custom(each["apiVersion"], each["kind"]) is not None
        refusal = _refusal(json.dumps(_metadata_of(each) if is_custom else each), version)
        if refusal is not None:
            yield f"{_what(each)}: {refusal}"


@cache
def _refusal(text: str, version: str) -> str | None:
    """Return why a version refuses an object; the same objects are in many renderings."""
    each = json.loads(text)
    try:
        kubernetes_validate.validate(each, version, True)
    except kubernetes_validate.ValidationError as error:
        return str(error.message)
    except kubernetes_validate.SchemaNotFoundError:
        return f"{version} has no such kind in {each['apiVersion']}"
    return None


def _metadata_of(custom: Object) -> Object:
    """Return an object of Kubernetes' own with the same metadata: these are alike for all."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": custom["metadata"]}


@cache
def _custom(api_version: str, kind: str) -> Draft202012Validator | None:
    """Return the schema of a kind that other projects define; None for any other kind."""
    group, _, version = api_version.rpartition("/")
    path = CRDS / f"{kind}-{group}-{version}.json".lower()
    return Draft202012Validator(json.loads(path.read_text())) if path.exists() else None


def _what(each: Object) -> str:
    return f"{each['kind']} {each['metadata']['name']}"
