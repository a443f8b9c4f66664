"""`python -m bench.spark`: pipelines of Spark on Semel and on Apache Kafka, side by side.

Both systems run at the same time, and wait while the other works. Each has a driver, which stays;
they take turns with every workload, so that whatever else the machine does hits both. A third
driver has a source and a sink that do nothing: no connector in Python could be faster.
"""

import argparse
import asyncio
import json
import platform
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Self

from rich.console import Console
from rich.table import Table

from aiosemel import SemelClient
from bench.kafka_node.server import (
    KafkaError,
    NodeOptions,
    create_topic,
    jars,
    missing,
    server,
)
from bench.spark.figures import PARTITIONS, SIZES, Line, Row, System, Workload, rows
from semel_local import ProcessCluster

_JARS = Path("build/kafka")
_BETTER = ("times better", "lowest", "highest")
_HEADINGS = ("", "Semel", "Kafka", "unit", *_BETTER, "goal", "nothing", *_BETTER)


class Driver:
    """A driver process of one system."""

    def __init__(self, system: System, bootstrap: str, connector: Sequence[Path]) -> None:
        self._command = (
            *(sys.executable, "-m", "bench.spark.driver", system, bootstrap),
            ",".join(str(jar.absolute()) for jar in connector),
        )
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            await self._process.wait()

    async def run(self, row: Row, topic: str) -> float:
        """Do one workload; returns its number."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        told = {
            "workload": row.workload,
            "topic": topic,
            "size": row.size_bytes,
            "records": row.records,
        }
        self._process.stdin.write(f"{json.dumps(told)}\n".encode())
        answer = await self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"the driver failed at {row.name}: see above")
        value: float = json.loads(answer)
        return value


async def measure(chosen: Sequence[Row], repetitions: int, folder: Path) -> Sequence[Line]:
    """Run everything; the systems take turns."""
    broker, connector = jars("broker", _JARS), jars("connector", _JARS)
    async with AsyncExitStack() as stack:
        semel = await stack.enter_async_context(ProcessCluster(folder / "semel", brokers=1))
        node = server(folder / "kafka", broker, NodeOptions(partitions=PARTITIONS))
        kafka = await stack.enter_async_context(node)
        client = await stack.enter_async_context(SemelClient(semel.bootstrap))
        drivers = {
            System.SEMEL: Driver(System.SEMEL, semel.bootstrap, ()),
            System.KAFKA: Driver(System.KAFKA, kafka.bootstrap, connector),
            System.NOTHING: Driver(System.NOTHING, "", ()),
        }
        for driver in drivers.values():
            await stack.enter_async_context(driver)
        values: dict[Row, dict[System, list[float]]] = defaultdict(lambda: defaultdict(list))
        for repetition in range(repetitions + 1):  # The first warms up.
            for row in chosen:
                topic = f"bench-{row.size_bytes}-{repetition}"
                if row.workload is Workload.SMALL_BATCH:
                    topic = f"small-{repetition}"
                for name in _written(row, topic):
                    await client.admin().create_topic(name, partitions=PARTITIONS)
                    await create_topic(kafka, broker, name, partitions=PARTITIONS)
                for system in _turns(repetition):
                    value = await drivers[system].run(row, topic)
                    if repetition:
                        values[row][system].append(value)
                    _say(row, system, repetition, value)
        return [Line(row=row, values=values[row]) for row in chosen]


def _written(row: Row, topic: str) -> Sequence[str]:
    """Return the topics that a workload is the first to use: to create them is not on the clock."""
    if row.workload in {Workload.WRITE, Workload.SMALL_BATCH}:
        return (topic, f"{topic}-copy")
    return ()


def _turns(repetition: int) -> Sequence[System]:
    return tuple(System) if repetition % 2 else tuple(reversed(System))


def _say(row: Row, system: System, repetition: int, value: float) -> None:
    run = f"run {repetition}" if repetition else "warm-up"
    print(f"{run}: {row.name}, {system}: {value:,.0f}", file=sys.stderr, flush=True)


def _show(lines: Sequence[Line]) -> None:
    table = Table(box=None)
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading in ("", "unit", "goal") else "right")
    for line in lines:
        table.add_row(
            line.row.name,
            _number(line.median(System.SEMEL)),
            _number(line.median(System.KAFKA)),
            line.unit,
            *_spread(line.ratios()),
            line.row.goal,
            _number(line.median(System.NOTHING)),
            *_spread(line.ratios(System.NOTHING)),
        )
    Console(width=180).print(table)


def _spread(ratios: Sequence[float]) -> Sequence[str]:
    """Return the middle, the lowest and the highest ratio of all repetitions."""
    return [f"{each(ratios):.2f}" if ratios else "-" for each in (median, min, max)]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def main() -> int:
    """Measure, and print the table; where Java or Maven are missing, say so."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=SIZES, metavar="B")
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of records")
    arguments = parser.parse_args()
    absent = missing()
    if absent:
        print(f"bench-spark is skipped: it compares with Apache Kafka, which needs {absent}")
        return 0
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    with tempfile.TemporaryDirectory(prefix="semel-bench-") as folder:
        try:
            lines = asyncio.run(
                measure(rows(arguments.sizes, arguments.scale), arguments.repetitions, Path(folder))
            )
        except KafkaError as error:
            print(error, file=sys.stderr)
            return 1
    _show(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
