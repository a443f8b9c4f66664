"""The objects to apply: an overlay of `k8s/` as it stands, with an image that the cluster has."""

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from real_cluster.kubectl import NAMESPACE, Kubectl

ROOT = Path(__file__).parents[2]
IMAGES = ("semel-coordinator", "semel-broker", "semel-group", "semel-cli")
_REGISTRY = "registry.example.com/"
"""The registry in overlays for production, until an operator puts in the real one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """The folders of `k8s/` that one cluster gets together, with patches."""

    overlay: str
    topics: str
    pizza: str
    patches: tuple[object, ...]


def _patch(kind: str, name: str, **changes: object) -> object:
    """Return a patch of an object; with the name ``any``, of all of its kind."""
    api = {"StatefulSet": "apps/v1", "Deployment": "apps/v1"}.get(kind, "postgresql.cnpg.io/v1")
    whole = {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **changes}
    target = {"kind": kind} if name == "any" else {"kind": kind, "name": name}
    return {"target": target, "patch": json.dumps(whole)}


DEV = Installed(
    overlay="overlays/dev",
    topics="topics",
    pizza="pizza",
    # Its Service stays, and so do the settings of the services: traces go nowhere.
    patches=(_patch("Deployment", "jaeger", **{"$patch": "delete"}),),
)


def highly_available(postgres: str) -> Installed:
    """Return the overlay `ha`, made small. ``postgres``: an image; "": what its operator takes."""
    small = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}}
    container = {"name": "semel", "resources": small}
    database = {
        "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}},
        "postgresql": {
            "parameters": {"shared_buffers": "128MB", "max_slot_wal_keep_size": "512MB"}
        },
        "storage": {"size": "1Gi"},
        "walStorage": {"size": "1Gi"},
    }
    if postgres:
        database["imageName"] = postgres
    return Installed(
        overlay="overlays/ha",
        topics="overlays/prod-topics",
        pizza="overlays/prod-pizza",
        patches=(
            _patch("StatefulSet", "any", spec={"template": {"spec": {"containers": [container]}}}),
            _patch("Cluster", "journal", spec=database),
        ),
    )


NOT_OF_KUBERNETES = ("cert-manager.io/", "monitoring.coreos.com/", "sparkoperator.k8s.io/")
"""Groups of kinds that a cluster only knows after an operator has installed them."""


def of_kubernetes(text: str) -> str:
    """Return only the objects of the kinds that every cluster knows."""
    documents = text.split("\n---\n")
    return "\n---\n".join(
        document
        for document in documents
        if not any(group in document for group in NOT_OF_KUBERNETES)
    )


def of_kind(kind: str, text: str) -> str:
    """Return the objects of this kind only."""
    documents = text.split("\n---\n")
    return "\n---\n".join(
        document for document in documents if f"\nkind: {kind}\n" in f"\n{document}\n"
    )


def render(
    kubectl: Kubectl,
    folder: str,
    image: str,
    patches: Sequence[object] = (),
    *,
    namespace: str = NAMESPACE,
) -> str:
    """Return the objects of a folder of ``k8s/``, all with one image."""
    name, _, tag = image.rpartition(":")
    with tempfile.TemporaryDirectory() as place:
        kustomization = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [os.path.relpath(ROOT / "k8s" / folder, Path(place).resolve())],
            "images": [
                {"name": registry + each, "newName": name, "newTag": tag}
                for each in IMAGES
                for registry in ("", _REGISTRY)
            ],
            "patches": list(patches),
            "namespace": namespace,
        }
        Path(place, "kustomization.yaml").write_text(json.dumps(kustomization))
        return kubectl("kustomize", place)
