"""Rules of journals in PostgreSQL, where there is one: an object of CloudNativePG."""

from collections.abc import Iterator

from manifests.rendered import Objects


def databases_keep_what_they_confirm(objects: Objects) -> Iterator[str]:
    """A confirmed commit is on two nodes at least, and a promoted standby has all of them."""
    for each in objects.of("Cluster"):
        name, spec = each["metadata"]["name"], each["spec"]
        synchronous = spec["postgresql"].get("synchronous", {})
        if synchronous.get("number", 0) < 1 or synchronous.get("dataDurability") != "required":
            yield f"{name} confirms what no standby has"
        if not synchronous.get("failoverQuorum"):
            yield f"{name} promotes a standby that may lack what another has confirmed"
        if spec["instances"] < synchronous.get("number", 0) + 2:
            yield f"{name} stops when one of its {spec['instances']} instances is away"
        apart = spec.get("affinity", {})
        if (apart.get("podAntiAffinityType"), apart.get("topologyKey")) != (
            "required",
            "kubernetes.io/hostname",
        ):
            yield f"{name} may have two instances on one node"


def primaries_do_not_wait_for_those_who_stay(objects: Objects) -> Iterator[str]:
    """Services never close their connections: a smart shutdown only keeps new ones out."""
    for each in objects.of("Cluster"):
        if each["spec"].get("smartShutdownTimeout") != 0:
            yield f"{each['metadata']['name']} admits nobody while it waits for its services"


def nothing_waits_for_a_node_that_keeps_nothing(objects: Objects) -> Iterator[str]:
    """Instances without a volume go elsewhere at once; places that are down do not count."""
    for service in objects.services() if objects.of("Cluster") else ():
        name, spec = service["metadata"]["name"], service["spec"]["template"]["spec"]
        at_once = {
            toleration["key"]
            for toleration in spec.get("tolerations", ())
            if toleration.get("tolerationSeconds") == 0
        }
        if at_once != {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}:
            yield f"{name} stays on a node that is down"
        for constraint in spec["topologySpreadConstraints"]:
            if constraint["whenUnsatisfiable"] == "DoNotSchedule" and (
                constraint.get("nodeTaintsPolicy") != "Honor"
            ):
                yield f"{name} would spread over what is down: {constraint['topologyKey']}"
