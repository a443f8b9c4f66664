"""What is applied: an overlay of `k8s/` as it stands, with an image that the cluster has."""

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from real_cluster.kubectl import NAMESPACE, Kubectl

ROOT = Path(__file__).parents[2]
IMAGES = ("semel-coordinator", "semel-broker", "semel-group", "semel-cli")
WITHOUT_JAEGER = {
    "target": {"kind": "Deployment", "name": "jaeger"},
    "patch": "$patch: delete\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: jaeger}",
}
"""Its Service stays, and so does what services are told: traces go nowhere."""


NOT_OF_KUBERNETES = ("cert-manager.io/", "monitoring.coreos.com/", "sparkoperator.k8s.io/")
"""Groups of kinds that a cluster only knows when somebody has installed them."""


def of_kubernetes(text: str) -> str:
    """Return the objects of those kinds only that every cluster knows."""
    documents = text.split("\n---\n")
    return "\n---\n".join(
        each for each in documents if not any(group in each for group in NOT_OF_KUBERNETES)
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
            "images": [{"name": each, "newName": name, "newTag": tag} for each in IMAGES],
            "patches": list(patches),
            "namespace": namespace,
        }
        Path(place, "kustomization.yaml").write_text(json.dumps(kustomization))
        return kubectl("kustomize", place)
