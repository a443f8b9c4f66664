"""Faults that a Kubernetes cluster makes: killed pods, drained nodes, cut networks."""

import json
import shlex
import subprocess
import time
from dataclasses import dataclass
from random import Random

from real_cluster import database
from real_cluster.job import APPLICATION, SERVICES
from real_cluster.kubectl import ClusterError, Kubectl, wait_until

_AWAY_S = 20.0
"""How long a node is cut off: long enough for every call to it to time out."""
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
"""The taint by which an operator tells Kubernetes to start a lost node's pods elsewhere."""
_DRAIN = ("--ignore-daemonsets", "--delete-emptydir-data")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How to cut a node off from all others, and to bring it back."""

    node: str
    cut: tuple[str, ...]
    heal: tuple[str, ...]

    @classmethod
    def parse(cls, node: str, cut: str, heal: str) -> "Cut":
        """Read commands as a shell would."""
        return cls(node=node, cut=tuple(shlex.split(cut)), heal=tuple(shlex.split(heal)))


def delete_pods(kubectl: Kubectl, random: Random) -> None:
    """Kill an instance of each service, and one of the application, in the middle of their work."""
    pods = [f"{each}-{random.randrange(3)}" for each in (*SERVICES, APPLICATION)]
    kubectl.kill(*pods)
    kubectl.rolled_out(*SERVICES, APPLICATION)


def drain(kubectl: Kubectl) -> None:
    """Drain a node; a second one must be refused as long as the first has not come back."""
    nodes = [node["metadata"]["name"] for node in kubectl.items("nodes")]
    kubectl("drain", nodes[0], *_DRAIN, "--timeout=90s")
    refused = kubectl.attempt("drain", nodes[1], *_DRAIN, "--timeout=10s")
    if not refused.returncode or "disruption budget" not in refused.stderr + refused.stdout:
        raise ClusterError(f"a second drain was not refused: {refused.stderr}")
    for node in nodes[:2]:
        kubectl("uncordon", node)
    kubectl.rolled_out(*SERVICES, APPLICATION)


def drain_primary(kubectl: Kubectl) -> None:
    """Drain the primary's node; all but its standby must be there again before it comes back."""
    node = database.node_of_primary(kubectl)
    kubectl("drain", node, *_DRAIN, "--timeout=90s")
    kubectl.rolled_out(*SERVICES, APPLICATION)
    kubectl("uncordon", node)
    database.whole(kubectl)


def restart(kubectl: Kubectl) -> None:
    """Restart every StatefulSet, all of them at the same time."""
    kubectl("rollout", "restart", *(f"statefulset/{each}" for each in (*SERVICES, APPLICATION)))
    kubectl.rolled_out(*SERVICES, APPLICATION, timeout_s=240)


def cut_off(kubectl: Kubectl, cut: Cut) -> None:
    """Cut a node off, and bring it back."""
    subprocess.run(cut.cut, check=True)
    try:
        time.sleep(_AWAY_S)
    finally:
        subprocess.run(cut.heal, check=True)
    wait_until(f"{cut.node} is ready again", lambda: _is_ready(kubectl, cut.node))
    kubectl.rolled_out(*SERVICES, APPLICATION)


def give_up(kubectl: Kubectl, cut: Cut) -> None:
    """Cut a node off for as long as it takes to go on without it, then bring it back."""
    killed = database.primary(kubectl)
    gone = ("taint", "node", cut.node, _OUT_OF_SERVICE)
    subprocess.run(cut.cut, check=True)
    try:
        database.promoted(kubectl, instead_of=killed)
        kubectl(*gone)
        kubectl.rolled_out(*SERVICES, APPLICATION, timeout_s=240)
    finally:
        subprocess.run(cut.heal, check=True)
    wait_until(f"{cut.node} is ready again", lambda: _is_ready(kubectl, cut.node))
    kubectl(*gone[:-1], f"{_OUT_OF_SERVICE}-")
    database.whole(kubectl)
    kubectl.rolled_out(*SERVICES, APPLICATION)


def _is_ready(kubectl: Kubectl, node: str) -> bool:
    status = json.loads(kubectl("get", "node", node, "--output", "json"))["status"]
    return any(
        each["type"] == "Ready" and each["status"] == "True" for each in status["conditions"]
    )
