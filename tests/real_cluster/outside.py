"""Clients that are not in the cluster: they come through `kubectl port-forward`."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from real_cluster.job import SERVICES
from real_cluster.kubectl import ClusterError, Kubectl

BOOTSTRAP = "127.0.0.1:19000"
CONSOLE_PORT = "9080"
INSTANCES = 3
_GET = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"


@contextmanager
def forwarded(kubectl: Kubectl) -> Iterator[None]:
    """Forward the ports that the overlay `dev` tells clients outside of."""
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                _forward(
                    kubectl,
                    f"pod/{service}-{each}",
                    f"19{role}0{each}:9094",
                    f"19{role}1{each}:9095",
                )
            )
            for role, service in enumerate(SERVICES)
            for each in range(INSTANCES)
        ]
        assert len(processes) == INSTANCES * len(SERVICES)
        yield


@contextmanager
def _forward(kubectl: Kubectl, target: str, *ports: str) -> Iterator[None]:
    line = [*kubectl.command, "--namespace", "semel", "port-forward", target, *ports]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for _ in ports:
            if not process.stdout.readline().startswith("Forwarding"):
                raise ClusterError(f"the ports of {target} are not forwarded")
        yield
    finally:
        process.terminate()
        process.wait()


def transaction(prefix: Sequence[str]) -> None:
    """Write and read a transaction. ``prefix`` runs a command where the forwarded ports are."""

    def semel(*arguments: str, stdin: str = "") -> str:
        line = ["-m", "semel_cli", *arguments, "--bootstrap", BOOTSTRAP]
        return _python(prefix, *line, stdin=stdin)

    sent = [f"record {number}" for number in range(30)]
    semel("topics", "create", "outside", "--partitions", "6")
    semel("produce", "outside", "--transactional-id", "outside", stdin="\n".join(sent) + "\n")
    options = ("--from-beginning", "--group", "outside", "--max-messages", str(len(sent)))
    seen = semel("consume", "outside", *options).splitlines()
    if sorted(seen) != sorted(sent):
        raise ClusterError(f"a client outside wrote {len(sent)} records and read {len(seen)}")


def console(kubectl: Kubectl, prefix: Sequence[str]) -> None:
    """Read a page of the console, which must name every instance."""
    kubectl("rollout", "status", "deployment/console", "--timeout=120s")
    with _forward(kubectl, "service/console", CONSOLE_PORT):
        page = _python(prefix, "-c", _GET, f"http://127.0.0.1:{CONSOLE_PORT}/cluster")
    names = [f"{service}-{each}" for service in SERVICES for each in range(INSTANCES)]
    if missing := [name for name in names if name not in page]:
        raise ClusterError(f"the console does not name {' '.join(missing)}")


def _python(prefix: Sequence[str], *arguments: str, stdin: str = "") -> str:
    line = [*prefix, sys.executable, *arguments]
    done = subprocess.run(line, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"a client outside failed: {done.stderr}")
    return done.stdout
