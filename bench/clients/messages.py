"""What the harness and a client's process say to each other: a line of JSON each.

The harness sends an order. The client answers with a line when the clock starts, and with a sample
when it is over. A client that fails writes why to standard error, and ends.
"""

import json
from dataclasses import asdict, dataclass
from typing import cast

from bench.clients.settings import Settings
from bench.workloads import Call, Kind, Sample, Task, Workload

BEGAN = "began"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a client is to do now."""

    task: Task
    settings: Settings


def write_order(order: Order) -> str:
    """Return its line."""
    return json.dumps(asdict(order))


def read_order(line: str) -> Order:
    """Return the order of a line."""
    told = json.loads(line)
    task = told["task"]
    workload = task.pop("workload")
    kind, call = Kind(workload.pop("kind")), Call(workload.pop("call"))
    return Order(
        task=Task(workload=Workload(kind=kind, call=call, **workload), **task),
        settings=Settings(**told["settings"]),
    )


def write_sample(sample: Sample) -> str:
    """Return its line."""
    return json.dumps(asdict(sample))


def read_sample(line: str) -> Sample:
    """Return the sample of a line."""
    told = json.loads(line)
    latencies = cast("list[float]", told.pop("latencies_ms"))
    return Sample(**told, latencies_ms=tuple(latencies))
