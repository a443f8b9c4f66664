"""The objects that kustomize makes of `k8s/`, and queries on them."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
NAMESPACE = "semel"
MODULES = {"coordinator": "semel_coordinator", "broker": "semel_broker"} | {
    "group-coordinator": "semel_group"
}
"""The program in the pods of each service, as `python3 -m` names it."""
NAME = "app.kubernetes.io/name"
_WITH_CERTIFICATES = ("overlays/prod-topics", "overlays/prod-pizza", "overlays/prod-pipeline")
INSTALLED = {
    "dev": ("overlays/dev", "topics", "pizza", "pipeline"),
    "prod": ("overlays/prod", *_WITH_CERTIFICATES),
    "ha": ("overlays/ha", *_WITH_CERTIFICATES),
}
"""Folders whose objects are in one cluster together."""
WORKLOADS = ("StatefulSet", "Deployment", "Job")

Object = dict[str, Any]
Labels = Mapping[str, str]

KUBECTL = shutil.which("kubectl")


@cache
def _rendered(folder: str) -> str:
    """Return the objects of a folder as JSON, which is read faster than a deep copy is made."""
    assert KUBECTL is not None
    line = [KUBECTL, "kustomize", str(ROOT / "k8s" / folder)]
    text = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    return json.dumps(list(yaml.safe_load_all(text)))


def render(name: str) -> "Objects":
    """Render the objects of one cluster; the caller may change them."""
    return Objects([each for folder in INSTALLED[name] for each in json.loads(_rendered(folder))])


@dataclass(frozen=True, slots=True)
class Objects:
    """All objects of a cluster."""

    all: list[Object]

    def of(self, *kinds: str) -> list[Object]:
        """Return the objects of some kinds."""
        return [each for each in self.all if each["kind"] in kinds]

    def names(self, *kinds: str) -> set[str]:
        """Return their names."""
        return {each["metadata"]["name"] for each in self.of(*kinds)}

    def one(self, kind: str, name: str) -> Object:
        """Return the object of this name."""
        return next(each for each in self.of(kind) if each["metadata"]["name"] == name)

    def services(self) -> list[Object]:
        """Return the StatefulSets of Semel's own services."""
        return [self.one("StatefulSet", name) for name in MODULES]

    def pods(self) -> Iterator[tuple[str, Object]]:
        """Yield the objects that make pods, and the pods' template."""
        for each in self.of(*WORKLOADS):
            yield f"{each['kind']} {each['metadata']['name']}", each["spec"]["template"]

    def selected(self, selector: Object) -> list[Object]:
        """Return the templates of pods that a selector selects."""
        return [pod for _, pod in self.pods() if matches(selector, labels_of(pod))]

    def settings(self, workload: Object) -> dict[str, str]:
        """Return the environment that instance 0 of a workload has."""
        return environment(self, workload, instance=0)


def labels_of(template: Object) -> Labels:
    """Return a pod's labels."""
    labels: Labels = template["metadata"].get("labels", {})
    return labels


def matches(selector: Object, labels: Labels) -> bool:
    """Whether a label selector selects; an empty one selects all."""
    wanted = selector.get("matchLabels", {}).items()
    return all(labels.get(key) == value for key, value in wanted) and all(
        each["operator"] == "In" and labels.get(each["key"]) in each["values"]
        for each in selector.get("matchExpressions", ())
    )


def containers(template: Object) -> list[Object]:
    """Return a pod's containers, those of its start too."""
    spec = template["spec"]
    return [*spec.get("initContainers", ()), *spec["containers"]]


def environment(objects: Objects, workload: Object, *, instance: int) -> dict[str, str]:
    """Return the environment of one instance's only container, with values from the cluster.

    Raises KeyError for a ConfigMap or a Secret that does not exist.
    """
    template = workload["spec"]["template"]
    container = template["spec"]["containers"][0]
    config_maps = {each["metadata"]["name"]: each["data"] for each in objects.of("ConfigMap")}
    pod = f"{workload['metadata']['name']}-{instance}"
    labels = {**labels_of(template), "apps.kubernetes.io/pod-index": str(instance)}
    fields = {"metadata.name": pod, "metadata.namespace": workload["metadata"]["namespace"]}
    fields |= {f"metadata.labels['{key}']": value for key, value in labels.items()}
    found: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        found |= config_maps[source["configMapRef"]["name"]]
    own: dict[str, str] = {}
    for each in container.get("env", ()):
        match each.get("valueFrom"):
            case {"fieldRef": {"fieldPath": path}}:
                own[each["name"]] = fields[path]
            case {"secretKeyRef": {"name": name, "key": key}}:
                own[each["name"]] = secrets_of_databases(objects)[name][key]
            case _:
                own[each["name"]] = expand(each["value"], own)
    return found | own


def secrets_of_databases(objects: Objects) -> dict[str, dict[str, str]]:
    """Return the Secrets that the operator of PostgreSQL makes for its clusters."""
    made = {}
    for each in objects.of("Cluster"):
        name, database = each["metadata"]["name"], each["spec"]["bootstrap"]["initdb"]
        server = f"{name}-rw.{NAMESPACE}:5432/{database['database']}"
        made[f"{name}-app"] = {"uri": f"postgresql://{database['owner']}:secret@{server}"}
        made[f"{name}-ca"] = {"ca.crt": "", "ca.key": ""}
    return made


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Put in the values of known variables; the rest stays as it is, as Kubernetes leaves it."""
    return re.sub(r"\$\((\w+)\)", lambda m: variables.get(m[1], m[0]), text)


def ports(template: Object) -> dict[str, int]:
    """Return the ports of a pod by name."""
    return {
        each["name"]: each["containerPort"]
        for container in containers(template)
        for each in container.get("ports", ())
    }


def policy_ports(rules: Sequence[Object]) -> set[int]:
    """Return the ports that rules of a NetworkPolicy name."""
    return {port["port"] for rule in rules for port in rule.get("ports", ())}
