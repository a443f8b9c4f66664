"""``python -m real_cluster``: every check, one line for each; exit status 1 if one has failed."""

import argparse
import json
import secrets
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random

from real_cluster import certificates, database, faults, outside
from real_cluster.faults import Cut
from real_cluster.job import (
    APPLICATION,
    SERVICES,
    check_nothing_was_seen,
    observer,
    progress,
    standstill_s,
)
from real_cluster.kubectl import ClusterError, Kubectl, wait_until
from real_cluster.overlay import (
    DEV,
    Installed,
    highly_available,
    of_kind,
    of_kubernetes,
    render,
)

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
    parser.add_argument("--overlay", choices=("dev", "ha"), default="dev", help="what is applied")
    parser.add_argument("--postgres", default="", help="for ha: the image, if not the operator's")
    parser.add_argument("--seed", type=int, default=0, help="which pods are deleted")
    parser.add_argument("--outside", default="", help="a command before that of clients outside")
    parser.add_argument("--cut-node", default="", help="the node that is cut off")
    parser.add_argument("--cut", default="", help="the command that does so")
    parser.add_argument("--heal", default="", help="the command that brings it back")
    options = parser.parse_args()
    kubectl = Kubectl.parse(options.kubectl)
    run = Run(kubectl)
    try:
        (_highly_available if options.overlay == "ha" else _on_volumes)(run, options)
    except ClusterError as error:
        print(f"FAILED: {error}", file=sys.stderr)
        print(kubectl.attempt("get", "pods", "--output", "wide").stdout, file=sys.stderr)
    print(f"{run.passed} passed, {run.failed} failed")
    return run.failed


class Run:
    """Prints the checks, and counts them."""

    def __init__(self, kubectl: Kubectl) -> None:
        self.kubectl = kubectl
        self.passed = self.failed = 0
        self._began = time.monotonic()

    @contextmanager
    def check(self, what: str) -> Iterator[None]:
        """Run a check; print its name, and how long it took."""
        began = time.monotonic()
        self.failed += 1
        yield
        self.failed -= 1
        self.passed += 1
        now = time.monotonic()
        print(f"{now - self._began:6.1f} s  {what} ({now - began:.1f} s)", flush=True)

    def fault(self, what: str, happens: Callable[[], object], *, spared: bool = True) -> None:
        """Make a fault; the job must go on after it.

        ``spared``: no service may end by itself. (A service ends when its database goes away.)
        """
        with self.check(what):
            began, looks = time.monotonic(), observer(self.kubectl)
            happens()
            services = SERVICES if spared else ()
            check_nothing_was_seen(self.kubectl, (*services, APPLICATION))
            at = progress(self.kubectl)
            if at["orders"] >= LINES:
                raise ClusterError("all orders were there before the last fault")
            wait_until(
                f"{_AFTER} lines more",
                lambda: progress(self.kubectl)["income"] >= at["income"] + _AFTER,
            )
            still_s = standstill_s(self.kubectl, looks, time.monotonic() - began)
            if still_s is not None:
                print(f"          no income for up to {still_s:.0f} s", flush=True)


def _on_volumes(run: Run, options: argparse.Namespace) -> None:
    kubectl, image = run.kubectl, options.image
    with run.check("the API server would take what is for work, without a warning"):
        _try(Kubectl(kubectl.command, _TRIED), ("overlays/prod", "overlays/prod-pipeline"), image)
    with run.check("the overlay is applied without a warning, its collector of traces is away"):
        _apply(kubectl, render(kubectl, DEV.overlay, image, DEV.patches))
    _made(run, DEV, image)
    with run.check("a client outside works through port-forward"), outside.forwarded(kubectl):
        outside.transaction(shlex.split(options.outside))
    with run.check("the console names every instance, through port-forward"):
        outside.console(kubectl, shlex.split(options.outside))
    pizza = _at_work(run, DEV, image)
    run.fault("pods are killed", lambda: faults.delete_pods(kubectl, Random(options.seed)))
    run.fault("a node is drained, a second one is refused", lambda: faults.drain(kubectl))
    run.fault("every StatefulSet is restarted", lambda: faults.restart(kubectl))
    if cut := _cut(options):
        run.fault("a node is cut off and comes back", lambda: faults.cut_off(kubectl, cut))
    _exact(run, pizza)


def _highly_available(run: Run, options: argparse.Namespace) -> None:
    kubectl, image = run.kubectl, options.image
    installed = highly_available(options.postgres)
    database.check_operator(kubectl)
    with run.check("the overlay is applied without a warning, certificates are made for it"):
        text = render(kubectl, installed.overlay, image, installed.patches)
        _apply(kubectl, of_kind("Namespace", text))
        _apply(kubectl, certificates.secrets(text))
        secret = f"--from-literal=secrets={secrets.token_hex(32)}"
        kubectl("create", "secret", "generic", "producer-tokens", secret)
        _apply(kubectl, of_kubernetes(text))
    with run.check("the database is there, on three nodes"):
        database.whole(kubectl)
    _made(run, installed, image)
    pizza = _at_work(run, installed, image)
    run.fault("pods are killed", lambda: faults.delete_pods(kubectl, Random(options.seed)))
    run.fault("a standby is killed", lambda: database.kill_standby(kubectl))
    run.fault("the primary is killed", lambda: database.kill_primary(kubectl), spared=False)
    run.fault("the primary is dismissed", lambda: database.dismiss_primary(kubectl), spared=False)
    run.fault("the primary's node is drained", lambda: faults.drain_primary(kubectl), spared=False)
    run.fault("every StatefulSet is restarted", lambda: faults.restart(kubectl), spared=False)
    if cut := _cut(options):
        with run.check("the primary moves to the node that will be cut off"):
            database.move_primary(kubectl, cut.node)
            kubectl.rolled_out(*SERVICES)
        run.fault("it is given up", lambda: faults.give_up(kubectl, cut), spared=False)
    _exact(run, pizza)


def _cut(options: argparse.Namespace) -> Cut | None:
    if options.cut_node:
        return Cut.parse(options.cut_node, options.cut, options.heal)
    print("NOT RUN: a node is cut off (CUT_NODE, CUT and HEAL say how)")
    return None


def _made(run: Run, installed: Installed, image: str) -> None:
    """Wait for all instances, and let a Job use them."""
    kubectl = run.kubectl
    with run.check("all instances are ready"):
        kubectl.rolled_out(*SERVICES)
    with run.check("a Job creates topics"):
        _apply(kubectl, render(kubectl, installed.topics, image))
        kubectl("wait", "--for=condition=complete", "job/topics", "--timeout=60s")


def _at_work(run: Run, installed: Installed, image: str) -> str:
    """Start the main job, slowly; return its objects, as they are in the manifests."""
    with run.check("the pizza job is at work"):
        pizza: str = render(run.kubectl, installed.pizza, image)
        _apply(run.kubectl, pizza.replace(_YEAR, "--seconds=1200"))
        wait_until("any income", lambda: progress(run.kubectl)["income"] > 0)
    return pizza


def _exact(run: Run, pizza: str) -> None:
    """Let the main job come to its end."""
    kubectl = run.kubectl
    with run.check("the orders that are left come in at once"):
        kubectl("delete", "job", "orders")
        _apply(kubectl, pizza.replace(_YEAR, "--seconds=0"))
        kubectl("wait", "--for=condition=complete", "job/orders", "--timeout=120s")
    with run.check("the income is exact, and the application has seen no error"):
        kubectl("wait", "--for=condition=complete", "job/income", "--timeout=300s")
        check_nothing_was_seen(kubectl, (APPLICATION,))
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
