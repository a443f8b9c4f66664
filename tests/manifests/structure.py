"""Rules that a schema cannot know: every reference must name an object that exists."""

import re
from collections.abc import Iterator

from manifests.rendered import (
    NAME,
    NAMESPACE,
    WORKLOADS,
    Object,
    Objects,
    containers,
    expand,
    labels_of,
    matches,
    ports,
    secrets_of_databases,
)

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_QUANTITY = re.compile(r"\d+(\.\d+)?(m|[kMGT]i?|Ki)?")
_PORT_MAX = 65_535
MADE_BY_HAND = {"producer-tokens"}
"""Secrets of which nothing may stand in a repository."""
CLUSTER_WIDE = ("Namespace", "ClusterRole", "ClusterRoleBinding")


def names_are_dns_labels(objects: Objects) -> Iterator[str]:
    for each in objects.all:
        name = each["metadata"]["name"]
        if not _LABEL.fullmatch(name):
            yield f"{each['kind']} {name} has no name that DNS takes"


def everything_is_in_the_namespace(objects: Objects) -> Iterator[str]:
    for each in objects.all:
        if each["kind"] not in CLUSTER_WIDE and each["metadata"].get("namespace") != NAMESPACE:
            yield f"{each['kind']} {each['metadata']['name']} is elsewhere"


def selectors_select_their_own_pods(objects: Objects) -> Iterator[str]:
    for each in objects.of("StatefulSet", "Deployment"):
        name, template = each["metadata"]["name"], each["spec"]["template"]
        if not matches(each["spec"]["selector"], labels_of(template)):
            yield f"{name} does not select its own pods"
        for constraint in template["spec"].get("topologySpreadConstraints", ()):
            if not matches(constraint["labelSelector"], labels_of(template)):
                yield f"{name} spreads other pods than its own"


def services_select_pods(objects: Objects) -> Iterator[str]:
    for each in objects.of("Service"):
        if not _pods_of(objects, each):
            yield f"Service {each['metadata']['name']} selects no pod"


def ports_have_names_that_pods_know(objects: Objects) -> Iterator[str]:
    for service in objects.of("Service"):
        for port in service["spec"].get("ports", ()):
            for pod in _pods_of(objects, service):
                if port.get("targetPort", port["name"]) not in ports(pod):
                    yield f"Service {service['metadata']['name']}: no port {port['targetPort']}"
    for monitor in objects.of("ServiceMonitor"):
        selector = monitor["spec"]["selector"]
        found = [
            each
            for each in objects.of("Service")
            if matches(selector, each["metadata"].get("labels", {}))
        ]
        if not found:
            yield "the ServiceMonitor selects no Service"
        for endpoint in monitor["spec"]["endpoints"]:
            for service in found:
                if endpoint["port"] not in {port["name"] for port in service["spec"]["ports"]}:
                    yield f"{service['metadata']['name']} has no port {endpoint['port']}"


def ports_are_numbers_of_ports(objects: Objects) -> Iterator[str]:
    for name, pod in objects.pods():
        numbers = [each["containerPort"] for c in containers(pod) for each in c.get("ports", ())]
        if len(set(numbers)) != len(numbers) or not all(
            0 < number <= _PORT_MAX for number in numbers
        ):
            yield f"{name} has ports {numbers}"
    for service in objects.of("Service"):
        for port in service["spec"].get("ports", ()):
            if not 0 < port["port"] <= _PORT_MAX:
                yield f"Service {service['metadata']['name']} has port {port['port']}"


def instances_have_a_headless_service(objects: Objects) -> Iterator[str]:
    for each in objects.of("StatefulSet"):
        name, service_name = each["metadata"]["name"], each["spec"].get("serviceName")
        if service_name not in objects.names("Service"):
            yield f"{name} names no Service"
            continue
        service = objects.one("Service", service_name)
        if service["spec"].get("clusterIP") != "None":
            yield f"Service {service_name} is not headless: its instances have no addresses"
        if each["spec"]["template"] not in _pods_of(objects, service):
            yield f"Service {service_name} does not select the instances of {name}"


def references_lead_to_something(objects: Objects) -> Iterator[str]:
    secrets = {
        *MADE_BY_HAND,
        *(each["spec"]["secretName"] for each in objects.of("Certificate")),
        *secrets_of_databases(objects),
    }
    known = {
        "configMap": objects.names("ConfigMap"),
        "secret": secrets,
        "persistentVolumeClaim": objects.names("PersistentVolumeClaim"),
    }
    for name, pod in objects.pods():
        if pod["spec"].get("serviceAccountName", "default") not in {
            *objects.names("ServiceAccount"),
            "default",
        }:
            yield f"{name} has a ServiceAccount that is not there"
        for volume in pod["spec"].get("volumes", ()):
            for kind, names in known.items():
                source = volume.get(kind)
                if source and not names & set(map(str, source.values())):
                    yield f"{name}: volume {volume['name']} is of a {kind} that is not there"
        for container in containers(pod):
            for source in container.get("envFrom", ()):
                if source["configMapRef"]["name"] not in known["configMap"]:
                    yield f"{name}: no ConfigMap {source['configMapRef']['name']}"


def mounts_are_volumes(objects: Objects) -> Iterator[str]:
    for each in objects.of(*WORKLOADS):
        pod = each["spec"]["template"]
        there = {volume["name"] for volume in pod["spec"].get("volumes", ())}
        claims = each["spec"].get("volumeClaimTemplates", ())
        there |= {claim["metadata"]["name"] for claim in claims}
        mounted = {mount["name"] for c in containers(pod) for mount in c.get("volumeMounts", ())}
        if mounted != there:
            yield f"{each['metadata']['name']}: {sorted(mounted ^ there)} is not both"


def variables_are_defined_before_they_are_used(objects: Objects) -> Iterator[str]:
    for name, pod in objects.pods():
        for container in containers(pod):
            before: dict[str, str] = {}
            for variable in container.get("env", ()):
                if "$(" in expand(variable.get("value", ""), before):
                    yield f"{name}: {variable['name']} names what comes later"
                before[variable["name"]] = "known"
            for argument in container.get("command", ()):
                if "$(" in expand(argument, before):
                    yield f"{name}: {argument} is not known"


def quantities_are_quantities(objects: Objects) -> Iterator[str]:
    for name, pod in objects.pods():
        for container in containers(pod):
            resources = container.get("resources", {})
            for kind in ("requests", "limits"):
                for what, quantity in resources.get(kind, {}).items():
                    if not _QUANTITY.fullmatch(str(quantity)):
                        yield f"{name}: {what} {quantity}"
            if not {"cpu", "memory", "ephemeral-storage"} <= set(resources.get("requests", {})):
                yield f"{name} does not say what it needs"
            for what in {"memory", "ephemeral-storage"} - set(resources.get("limits", {})):
                yield f"{name} has no limit of {what}"


def images_are_pinned(objects: Objects) -> Iterator[str]:
    for name, pod in objects.pods():
        for container in containers(pod):
            tag = container["image"].rpartition("/")[2].partition(":")[2]
            if tag in {"", "latest"}:
                yield f"{name} runs any version of {container['image']}"


def _pods_of(objects: Objects, service: Object) -> list[Object]:
    selector = dict(service["spec"].get("selector", {}))
    pod_name = selector.pop("statefulset.kubernetes.io/pod-name", None)
    if pod_name is None:
        return objects.selected({"matchLabels": selector}) if selector else []
    owner, _, number = pod_name.rpartition("-")
    return [
        each["spec"]["template"]
        for each in objects.of("StatefulSet")
        if each["metadata"]["name"] == owner and int(number) < each["spec"]["replicas"]
    ]


def every_instance_is_reached_from_outside(objects: Objects) -> Iterator[str]:
    """Where there are load balancers at all."""
    balanced = {
        each["spec"]["selector"]["statefulset.kubernetes.io/pod-name"]
        for each in objects.of("Service")
        if each["spec"].get("type") == "LoadBalancer"
    }
    if not balanced:
        return
    for service in objects.services():
        name = service["metadata"]["name"]
        for number in range(service["spec"]["replicas"]):
            if f"{name}-{number}" not in balanced:
                yield f"{name}-{number} has no load balancer"


def pipelines_find_what_they_name(objects: Objects) -> Iterator[str]:
    """An operator makes their pods, long after this."""
    known = {
        "persistentVolumeClaim": ("claimName", objects.names("PersistentVolumeClaim")),
        "configMap": ("name", objects.names("ConfigMap")),
    }
    for each in objects.of("SparkApplication"):
        name, spec = each["metadata"]["name"], each["spec"]
        accounts = {spec[role].get("serviceAccount") for role in ("driver", "executor")}
        if not accounts <= objects.names("ServiceAccount"):
            yield f"driver or executors of {name} have a ServiceAccount that is not there"
        for volume in spec["volumes"]:
            for kind, (field, names) in known.items():
                if kind in volume and volume[kind][field] not in names:
                    yield f"{name}: volume {volume['name']} is of a {kind} that is not there"
        for role in (spec["driver"], spec["executor"]):
            mounted = {mount["name"] for mount in role["volumeMounts"]}
            if not mounted <= {volume["name"] for volume in spec["volumes"]}:
                yield f"{name} mounts what is no volume"
            if role["labels"].get("semel-client") != "true":
                yield f"{name} is not admitted by the services"
        if spec["image"].endswith((":latest", "pipelines")):
            yield f"{name} runs any version"


def labels_name_the_program(objects: Objects) -> Iterator[str]:
    for name, pod in objects.pods():
        if NAME not in labels_of(pod):
            yield f"{name}: its pods do not say what they are"
