"""A client that is not in the cluster: it comes through `kubectl port-forward`."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from real_cluster.job import SERVICES
from real_cluster.kubectl import ClusterError, Kubectl

BOOTSTRAP = "127.0.0.1:19000"
INSTANCES = 3


@contextmanager
def forwarded(kubectl: Kubectl) -> Iterator[None]:
    """Forward the ports that the overlay `dev` tells clients outside of."""
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                _forward(kubectl, f"{service}-{each}", f"19{role}0{each}", f"19{role}1{each}")
            )
            for role, service in enumerate(SERVICES)
            for each in range(INSTANCES)
        ]
        assert len(processes) == INSTANCES * len(SERVICES)
        yield


@contextmanager
def _forward(kubectl: Kubectl, pod: str, grpc: str, frames: str) -> Iterator[None]:
    line = [*kubectl.command, "--namespace", "semel", "port-forward", f"pod/{pod}"]
    process = subprocess.Popen(
        [*line, f"{grpc}:9094", f"{frames}:9095"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        for _ in range(2):
            if not process.stdout.readline().startswith("Forwarding"):
                raise ClusterError(f"the ports of {pod} are not forwarded")
        yield
    finally:
        process.terminate()
        process.wait()


def transaction(prefix: Sequence[str]) -> None:
    """Write and read a transaction. ``prefix`` runs a command where the forwarded ports are."""

    def semel(*arguments: str, stdin: str = "") -> str:
        line = [*prefix, sys.executable, "-m", "semel_cli", *arguments, "--bootstrap", BOOTSTRAP]
        done = subprocess.run(line, input=stdin, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ClusterError(f"a client outside failed: {done.stderr}")
        return done.stdout

    sent = [f"record {number}" for number in range(30)]
    semel("topics", "create", "outside", "--partitions", "6")
    semel("produce", "outside", "--transactional-id", "outside", stdin="\n".join(sent) + "\n")
    options = ("--from-beginning", "--group", "outside", "--max-messages", str(len(sent)))
    seen = semel("consume", "outside", *options).splitlines()
    if sorted(seen) != sorted(sent):
        raise ClusterError(f"a client outside wrote {len(sent)} records and read {len(seen)}")
