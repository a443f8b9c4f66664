"""What processes that trace get from their environment, and the collector that gets their spans."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


def share(ratio: str) -> Mapping[str, str]:
    """Return the variables with which such a share of transactions is sampled."""
    return {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": ratio}


OFF: Mapping[str, str] = {}
NONE = share("0")
ONE_PERCENT = share("0.01")
ALL = share("1")


@contextmanager
def collector() -> Iterator[Mapping[str, str]]:
    """Run a collector that drops all it gets, in a process of its own.

    Yields the variables with which processes export to it.
    """
    command = [sys.executable, "-m", "semel_runtime.testing.collector"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield {"OTEL_EXPORTER_OTLP_ENDPOINT": process.stdout.readline().decode().strip()}
        process.stdin.close()
