"""``python -m real_cluster``: every check, one line for each; exit status 1 if one has failed."""

import argparse
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random

from real_cluster import faults, outside
from real_cluster.faults import Cut
from real_cluster.job import SERVICES, check_nothing_was_seen, progress
from real_cluster.kubectl import ClusterError, Kubectl, wait_until
from real_cluster.overlay import WITHOUT_JAEGER, of_kubernetes, render

LINES = 49_574
EXACT = {"exact": True, "income": "817860.05", "lines": LINES, "duplicates": 0, "losses": 0}
_TRIED = "semel-tried"
"""The namespace in which nothing is."""
_YEAR = "--seconds=120"
"""How long orders come in by `k8s/pizza`. While there are faults they must go on coming,
however slow the machine is; then they may come as fast as they can."""
_AFTER = 300
"""Lines of income that must come after each fault, while there are orders."""


def main() -> int:
    """Run all checks."""
    parser = argparse.ArgumentParser(prog="real_cluster", description=__doc__)
    parser.add_argument("--kubectl", default="kubectl", help="the command, as a shell takes it")
    parser.add_argument("--image", required=True, help="semel-cli's, with which all services run")
    parser.add_argument("--overlay", default="overlays/dev", help="folder below k8s/")
    parser.add_argument("--seed", type=int, default=0, help="which pods are deleted")
    parser.add_argument("--outside", default="", help="a command before that of clients outside")
    parser.add_argument("--cut-node", default="", help="the node that is cut off")
    parser.add_argument("--cut", default="", help="the command that does so")
    parser.add_argument("--heal", default="", help="the command that brings it back")
    options = parser.parse_args()
    kubectl = Kubectl.parse(options.kubectl)
    run = Run(kubectl)
    try:
        _all(run, options)
    except ClusterError as error:
        print(f"FAILED: {error}", file=sys.stderr)
        print(kubectl.attempt("get", "pods", "--output", "wide").stdout, file=sys.stderr)
    print(f"{run.passed} passed, {run.failed} failed")
    return run.failed


class Run:
    """Says what is checked, and counts."""

    def __init__(self, kubectl: Kubectl) -> None:
        self.kubectl = kubectl
        self.passed = self.failed = 0
        self._began = time.monotonic()

    @contextmanager
    def check(self, what: str) -> Iterator[None]:
        """Say what is checked, and how long it took."""
        began = time.monotonic()
        self.failed += 1
        yield
        self.failed -= 1
        self.passed += 1
        now = time.monotonic()
        print(f"{now - self._began:6.1f} s  {what} ({now - began:.1f} s)", flush=True)

    def fault(self, what: str, happens: Callable[[], None]) -> None:
        """Let something happen; the job must go on after it."""
        with self.check(what):
            happens()
            check_nothing_was_seen(self.kubectl)
            at = progress(self.kubectl)
            if at["orders"] >= LINES:
                raise ClusterError("all orders were there before the last fault")
            wait_until(
                f"{_AFTER} lines more",
                lambda: progress(self.kubectl)["income"] >= at["income"] + _AFTER,
            )


def _all(run: Run, options: argparse.Namespace) -> None:
    kubectl, image = run.kubectl, options.image
    with run.check("the API server would take what is for work, without a warning"):
        _try(Kubectl(kubectl.command, _TRIED), ("overlays/prod", "pipeline"), image)
    with run.check("the overlay is applied without a warning, its collector of traces is away"):
        text = render(kubectl, options.overlay, image, [WITHOUT_JAEGER])
        _apply(kubectl, text)
    with run.check("all instances are ready"):
        kubectl.rolled_out(*SERVICES)
    with run.check("a Job creates topics"):
        _apply(kubectl, render(kubectl, "topics", image))
        kubectl("wait", "--for=condition=complete", "job/topics", "--timeout=60s")
    with run.check("a client outside works through port-forward"), outside.forwarded(kubectl):
        outside.transaction(shlex.split(options.outside))
    with run.check("the pizza job is at work"):
        pizza = render(kubectl, "pizza", image)
        _apply(kubectl, pizza.replace(_YEAR, "--seconds=1200"))
        wait_until("any income", lambda: progress(kubectl)["income"] > 0)
    run.fault("pods are killed", lambda: faults.delete_pods(kubectl, Random(options.seed)))
    run.fault("a node is drained, a second one is refused", lambda: faults.drain(kubectl))
    run.fault("every StatefulSet is restarted", lambda: faults.restart(kubectl))
    if options.cut_node:
        cut = Cut.parse(options.cut_node, options.cut, options.heal)
        run.fault("a node is cut off and comes back", lambda: faults.cut_off(kubectl, cut))
    else:
        print("NOT RUN: a node is cut off (CUT_NODE, CUT and HEAL say how)")
    with run.check("the orders that are left come in at once"):
        kubectl("delete", "job", "orders")
        _apply(kubectl, pizza.replace(_YEAR, "--seconds=0"))
        kubectl("wait", "--for=condition=complete", "job/orders", "--timeout=120s")
    with run.check("the income is exact, and the application has seen no error"):
        kubectl("wait", "--for=condition=complete", "job/income", "--timeout=300s")
        check_nothing_was_seen(kubectl)
        last = json.loads(kubectl("logs", "job/income", "--tail=1"))
        wrong = {name: last.get(name) for name, value in EXACT.items() if last.get(name) != value}
        if wrong:
            raise ClusterError(f"the income is wrong: {last}")
        print(f"          {last}")


def _try(kubectl: Kubectl, folders: Sequence[str], image: str) -> None:
    """Let the server say what it would do; it needs a namespace for that."""
    kubectl("create", "namespace", _TRIED)
    try:
        for folder in folders:
            text = of_kubernetes(render(kubectl, folder, image, namespace=_TRIED))
            options = ("--server-side", "--dry-run=server", "--force-conflicts", "--filename", "-")
            kubectl("apply", *options, stdin=text)
    finally:
        kubectl.attempt("delete", "namespace", _TRIED, "--wait=false")


def _apply(kubectl: Kubectl, text: str) -> None:
    """Apply as a user would: the namespace comes first, the rest may need it."""
    kubectl("apply", "--server-side", "--filename", "-", stdin=text)


if __name__ == "__main__":
    sys.exit(main())
