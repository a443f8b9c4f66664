"""Rules of the permissions of pods, and of the access to them."""

from collections.abc import Iterator

from manifests.rendered import NAMESPACE, Object, Objects, containers
from semel_console.options import Listen

_VOLUMES = {"configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"}


def pods_are_restricted(objects: Objects) -> Iterator[str]:
    """As the Pod Security Standard of that name has it; and none may write to its image."""
    for name, pod in objects.pods():
        spec = pod["spec"]
        security = spec.get("securityContext", {})
        if security.get("runAsNonRoot") is not True or not security.get("runAsUser"):
            yield f"{name} may run as root"
        if security.get("seccompProfile", {}).get("type") != "RuntimeDefault":
            yield f"{name} has no seccomp profile"
        if {"hostNetwork", "hostPID", "hostIPC"} & set(spec):
            yield f"{name} is in the namespaces of its node"
        for container in containers(pod):
            yield from _unrestricted(name, container)
        for volume in spec.get("volumes", ()):
            if not _VOLUMES & set(volume):
                yield f"{name}: volume {volume['name']} is of a kind that may not be"


def _unrestricted(name: str, container: Object) -> Iterator[str]:
    security = container.get("securityContext", {})
    if security.get("allowPrivilegeEscalation") is not False or security.get("privileged"):
        yield f"{name} may get more privileges"
    if security.get("readOnlyRootFilesystem") is not True:
        yield f"{name} may write to its image"
    if security.get("capabilities") != {"drop": ["ALL"]}:
        yield f"{name} has capabilities"
    if any("hostPort" in port for port in container.get("ports", ())):
        yield f"{name} takes a port of its node"


def secrets_are_closed_to_others(objects: Objects) -> Iterator[str]:
    """Services refuse a secret that every user may read, as without a mode of its own."""
    for name, pod in objects.pods():
        for volume in pod["spec"].get("volumes", ()):
            if "secret" in volume and volume["secret"].get("defaultMode", 0o644) & 0o007:
                yield f"{name}: every user may read the secret in volume {volume['name']}"


def the_namespace_takes_only_restricted_pods(objects: Objects) -> Iterator[str]:
    labels = objects.one("Namespace", NAMESPACE)["metadata"]["labels"]
    if labels.get("pod-security.kubernetes.io/enforce") != "restricted":
        yield "the namespace enforces nothing"


def nobody_has_a_token(objects: Objects) -> Iterator[str]:
    for account in objects.of("ServiceAccount"):
        if account.get("automountServiceAccountToken") is not False and not _is_granted(
            objects, account["metadata"]["name"]
        ):
            yield f"ServiceAccount {account['metadata']['name']} has a token"
    for name, pod in objects.pods():
        if pod["spec"].get("automountServiceAccountToken") is not False:
            yield f"{name} has a token"
    for each in objects.of("SparkApplication"):
        # Without an account of their own, Spark gives them the driver's.
        account = each["spec"]["executor"].get("serviceAccount")
        if account is None or _is_granted(objects, account):
            yield f"executors of {each['metadata']['name']} have a token"


def _is_granted(objects: Objects, account: str) -> bool:
    """Whether a role binding names the account: only such an account needs a token."""
    bindings = objects.of("RoleBinding")
    return any(
        account == subject["name"] for binding in bindings for subject in binding["subjects"]
    )


def each_service_is_somebody(objects: Objects) -> Iterator[str]:
    for service in objects.services():
        if service["spec"]["template"]["spec"]["serviceAccountName"] != service["metadata"]["name"]:
            yield f"{service['metadata']['name']} has no ServiceAccount of its own"


def one_instance_may_leave_at_a_time(objects: Objects) -> Iterator[str]:
    for service in objects.services():
        template = service["spec"]["template"]
        budgets = [
            budget["spec"]
            for budget in objects.of("PodDisruptionBudget")
            if template in objects.selected(budget["spec"]["selector"])
        ]
        if [budget.get("maxUnavailable") for budget in budgets] != [1]:
            yield f"{service['metadata']['name']} has {len(budgets)} budgets, or another one than 1"
        if {budget.get("unhealthyPodEvictionPolicy") for budget in budgets} != {"AlwaysAllow"}:
            yield f"{service['metadata']['name']}, if not ready, keeps its node from being drained"


def instances_spread_over_nodes_and_zones(objects: Objects) -> Iterator[str]:
    for service in objects.services():
        constraints = service["spec"]["template"]["spec"].get("topologySpreadConstraints", ())
        keys = {constraint["topologyKey"] for constraint in constraints}
        if keys != {"topology.kubernetes.io/zone", "kubernetes.io/hostname"}:
            yield f"{service['metadata']['name']} spreads over {sorted(keys)}"


def instances_start_together_and_keep_volumes(objects: Objects) -> Iterator[str]:
    for service in objects.services():
        spec = service["spec"]
        if spec.get("podManagementPolicy") != "Parallel":
            yield f"{service['metadata']['name']}: one would wait for another that waits for it"
        policy = spec.get("persistentVolumeClaimRetentionPolicy")
        if policy != {"whenDeleted": "Retain", "whenScaled": "Retain"}:
            yield f"{service['metadata']['name']} loses its volumes"


def nothing_is_reached_by_default(objects: Objects) -> Iterator[str]:
    closed = [
        each
        for each in objects.of("NetworkPolicy")
        if each["spec"]["podSelector"] == {}
        and set(each["spec"]["policyTypes"]) == {"Ingress", "Egress"}
        and not each["spec"].get("ingress")
        and not each["spec"].get("egress")
    ]
    if not closed:
        yield "whatever has no policy of its own is open"


def clients_bear_the_label(objects: Objects) -> Iterator[str]:
    for each in objects.of("Deployment", "Job", "StatefulSet"):
        template = each["spec"]["template"]
        images = [container["image"] for container in containers(template)]
        is_client = any("semel-cli" in image for image in images)
        if is_client and template["metadata"]["labels"].get("semel-client") != "true":
            yield f"{each['metadata']['name']} is not admitted by the services"


def the_console_is_reached_by_a_port_forward_alone(objects: Objects) -> Iterator[str]:
    """It listens within its pod, no policy admits a pod, and its probes ask from within."""
    console = objects.one("Deployment", "console")["spec"]["template"]
    (container,) = containers(console)
    words = container["command"]
    listen = Listen.parse(words[words.index("--listen") + 1])
    if not listen.is_loopback:
        yield f"the console listens on {listen.host}"
    if listen.port not in {each["containerPort"] for each in container["ports"]}:
        yield f"the console listens at {listen.port}, and its pod has another port"
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = " ".join(container.get(kind, {}).get("exec", {}).get("command", ()))
        if f"http://127.0.0.1:{listen.port}/health" not in asked:
            yield f"the console: {kind} asks {asked!r}"
    for policy in objects.of("NetworkPolicy"):
        is_own = console in objects.selected(policy["spec"]["podSelector"])
        if is_own and policy["spec"].get("ingress"):
            yield f"{policy['metadata']['name']} admits pods to the console"
