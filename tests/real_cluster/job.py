"""The main job as it goes on inside the cluster, and the errors that it must not log."""

import json
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from real_cluster.kubectl import ClusterError, Kubectl

SERVICES = ("coordinator", "broker", "group-coordinator")
APPLICATION = "pizza-app"
_BEFORE_S = 10
"""From when on logs are read for a standstill: it begins with the last income before it."""
_SIGNS = ("Traceback", "Error:")
"""Texts in the log of an application that got an error. An error that ends it is a restart of its
container, and its warnings tell of instances that are away: the faults take them away."""


def progress(kubectl: Kubectl) -> dict[str, int]:
    """Return how many lines of orders and of income the checking Job has seen last."""
    said = kubectl.attempt("logs", "job/income", "--tail=20").stdout.splitlines()
    found = [json.loads(line) for line in said if line.startswith('{"orders"')]
    return found[-1] if found else {"orders": 0, "income": 0}


def observer(kubectl: Kubectl) -> str:
    """Return the name of the pod that checks; a new pod starts its checks from the beginning."""
    pods = kubectl.items("pods", "app.kubernetes.io/name=income")
    return next((p["metadata"]["name"] for p in pods if p["status"]["phase"] == "Running"), "")


def standstill_s(kubectl: Kubectl, pod: str, since_s: float) -> float | None:
    """Return the longest time in which no income came, of so many seconds, to two seconds.

    That is how often the checking pod looks; the time is that of its node. None: it is gone.
    """
    options = ("--timestamps", f"--since={since_s + _BEFORE_S:.0f}s")
    said = kubectl.attempt("logs", pod, *options)
    came, seen = [], -1
    for line in said.stdout.splitlines():
        at, _, text = line.partition(" ")
        if text.startswith('{"orders"') and (income := json.loads(text)["income"]) > seen:
            came.append(datetime.fromisoformat(at))
            seen = income
    if said.returncode:
        return None
    return max(((after - before).total_seconds() for before, after in pairwise(came)), default=0)


def errors_of_application(kubectl: Kubectl) -> list[str]:
    """Return the lines of its logs that tell of an error."""
    options = ("--selector", f"app.kubernetes.io/name={APPLICATION}", "--tail=-1", "--prefix")
    lines = kubectl("logs", *options).splitlines()
    return [line for line in lines if any(sign in line for sign in _SIGNS)]


def restarts(kubectl: Kubectl, *names: str) -> dict[str, int]:
    """Return how often Kubernetes has restarted containers of these that ended by themselves."""
    selector = f"app.kubernetes.io/name in ({', '.join(names)})"
    return {
        pod["metadata"]["name"]: count
        for pod in kubectl.items("pods", selector)
        if (count := sum(map(_restarts, pod["status"].get("containerStatuses", ()))))
    }


def _restarts(status: Any) -> int:  # noqa: ANN401 - JSON
    return int(status["restartCount"])


def check_nothing_was_seen(kubectl: Kubectl, never_restarted: Sequence[str]) -> None:
    """Raise ClusterError if an application had an error, or one of these had to be restarted."""
    if found := errors_of_application(kubectl):
        raise ClusterError("the application had errors:\n" + "\n".join(found[:20]))
    if found_restarts := restarts(kubectl, *never_restarted):
        raise ClusterError(f"containers ended by themselves: {found_restarts}")
