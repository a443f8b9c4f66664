"""The PostgreSQL of `k8s/components/postgres`, as its operator runs it, and its faults."""

import json
from typing import Any

from real_cluster.kubectl import ClusterError, Kubectl, wait_until

KIND = "clusters.postgresql.cnpg.io"
NAME = "journal"
_WHOLE_S = 300.0
"""How long the operator may take until all instances are there: a new standby is a copy."""
_PROMOTED_S = 180.0
_ENDS_S = 60
"""How long an instance takes at most to end when it is told to."""
_INSTANCES = f"cnpg.io/cluster={NAME},cnpg.io/podRole=instance"


def check_operator(kubectl: Kubectl) -> None:
    """Raise ClusterError if the cluster does not know the kind of such a database."""
    if kubectl.attempt("get", KIND).returncode:
        raise ClusterError(
            "the operator CloudNativePG is not installed: docs/run/deploy.md says how"
        )


def whole(kubectl: Kubectl) -> None:
    """Wait until its operator says that all instances are there, and one of them is primary."""
    wait_until("the database is whole", lambda: _is_whole(kubectl), _WHOLE_S)


def primary(kubectl: Kubectl) -> str:
    """Return the name of the primary's pod."""
    return str(_get(kubectl)["status"]["currentPrimary"])


def node_of_primary(kubectl: Kubectl) -> str:
    """Return the name of its node."""
    return _node(kubectl, primary(kubectl))


def kill_primary(kubectl: Kubectl) -> None:
    """Let the primary end without time for anything: a standby takes its place."""
    killed = primary(kubectl)
    kubectl.kill(killed)
    promoted(kubectl, instead_of=killed)
    whole(kubectl)


def dismiss_primary(kubectl: Kubectl) -> None:
    """Let the primary end in order, as when its node is shut down: services hold connections."""
    dismissed = primary(kubectl)
    kubectl("delete", "pod", dismissed, f"--timeout={_ENDS_S}s")
    promoted(kubectl, instead_of=dismissed)
    whole(kubectl)


def kill_standby(kubectl: Kubectl) -> None:
    """Let a standby end: the other one confirms."""
    standby = next(pod for pod in _pods(kubectl) if pod != primary(kubectl))
    kubectl.kill(standby)
    whole(kubectl)


def promoted(kubectl: Kubectl, *, instead_of: str) -> None:
    """Wait until another instance is the primary."""
    wait_until(
        f"another primary instead of {instead_of}",
        lambda: primary(kubectl) not in {"", instead_of},
        _PROMOTED_S,
    )


def move_primary(kubectl: Kubectl, node: str) -> None:
    """Let the instance on this node be the primary, as the command `kubectl cnpg promote` does."""
    there = next(pod for pod in _pods(kubectl) if _node(kubectl, pod) == node)
    if there != primary(kubectl):
        wanted = {"status": {"targetPrimary": there, "phase": "Switchover in progress"}}
        options = ("--subresource=status", "--type=merge", "--patch", json.dumps(wanted))
        kubectl("patch", KIND, NAME, *options)
        wait_until(f"{there} is primary", lambda: primary(kubectl) == there, _PROMOTED_S)
    whole(kubectl)


def _get(kubectl: Kubectl) -> Any:  # noqa: ANN401 - JSON
    return json.loads(kubectl("get", KIND, NAME, "--output", "json"))


def _is_whole(kubectl: Kubectl) -> bool:
    """Ask for pods too: the status that the operator reports may be out of date."""
    cluster = _get(kubectl)
    status, instances = cluster.get("status", {}), cluster["spec"]["instances"]
    pods = kubectl.items("pods", _INSTANCES)
    return (
        _is_ready(cluster)
        and status.get("readyInstances") == instances
        and status["currentPrimary"] == status["targetPrimary"]
        and len(pods) == instances
        and all(map(_is_ready, pods))
    )


def _is_ready(what: Any) -> bool:  # noqa: ANN401 - JSON
    return "deletionTimestamp" not in what["metadata"] and any(
        each["type"] == "Ready" and each["status"] == "True"
        for each in what.get("status", {}).get("conditions", ())
    )


def _pods(kubectl: Kubectl) -> list[str]:
    return [each["metadata"]["name"] for each in kubectl.items("pods", _INSTANCES)]


def _node(kubectl: Kubectl, pod: str) -> str:
    return kubectl("get", "pod", pod, "--output", "jsonpath={.spec.nodeName}")
