"""`python -m bench.clients NAME BOOTSTRAP`: a client in Python that runs what it is told.

The process stays over all runs: what is measured is warm. A client's library is imported when its
name asks for it, because only `make bench-kafka` installs those of Kafka.
"""

import importlib
import sys
from collections.abc import Callable

from aiosemel.memory import keep_freed_memory
from bench.clients.messages import BEGAN, Order, read_order, write_sample
from bench.clients.meter import Meter
from bench.clients.settings import ClientName
from bench.workloads import Sample

Run = Callable[[str, Order, Meter], Sample]
MODULES = {
    ClientName.SEMEL: "bench.clients.semel.process",
    ClientName.CONFLUENT: "bench.clients.confluent_client",
    ClientName.AIOKAFKA: "bench.clients.aiokafka_client",
}


def main(name: ClientName, bootstrap: str) -> None:
    """Answer each line of standard input."""
    run: Run = importlib.import_module(MODULES[name]).run
    keep_freed_memory()  # Of every client in Python: each moves megabytes in the larger workloads.
    for line in sys.stdin:
        order = read_order(line)
        sample = run(bootstrap, order, Meter(order.task, _began))
        print(write_sample(sample), flush=True)


def _began() -> None:
    print(BEGAN, flush=True)


if __name__ == "__main__":
    main(ClientName(sys.argv[1]), sys.argv[2])
