"""`python -m bench.kafka [CELL…]`: Semel beside Apache Kafka, taking turns; prints a table.

All systems are up all the time; only the one whose turn it is has something to do. Where Java or
Maven is missing, Semel runs alone.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable

from bench.clients.settings import ClientName
from bench.kafka.cells import CELLS, Cell, Contestant, UnknownCellError, chosen_cells
from bench.kafka.harness import Harness, Pace
from bench.kafka.machine import machine, versions
from bench.kafka.page import FOLDER, page, path_of
from bench.kafka.report import Limit, Report, read_report, write_report
from bench.kafka.systems import Running, java_client, running
from bench.kafka.table import Table, tables
from bench.kafka_node.server import KafkaError, missing
from bench.limits import limits
from bench.processes import resident_mib

_JSON = Path("build/bench-kafka.json")
_WIDTH = 180


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say; returns 1 if anything is missing that should be there."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    try:
        cells = chosen_cells(asked.cells)
    except UnknownCellError as error:
        parser.error(str(error))
    if asked.runs < 1:
        parser.error(f"runs is {asked.runs}, less than 1")
    if asked.read is not None and not asked.read.is_file():
        parser.error(f"--read is no file: {asked.read}")
    try:
        report = read_report(asked.read) if asked.read else _measured(cells, asked.runs, asked.json)
    except KafkaError as error:
        print(error, file=sys.stderr)
        return 1
    _show(report)
    if asked.write:
        _write(report)
    return 1 if report.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.kafka", description=__doc__)
    known = ", ".join(cell.name for cell in CELLS)
    parser.add_argument("cells", nargs="*", metavar="CELL", help=f"all without any: {known}")
    parser.add_argument("--runs", type=int, default=3, help="of each client; the median counts")
    parser.add_argument("--json", type=Path, default=_JSON, help=f"what to write: {_JSON}")
    parser.add_argument("--read", type=Path, help="measure nothing: show what this JSON has")
    parser.add_argument("--write", action="store_true", help=f"write a dated page into {FOLDER}")
    return parser


def _measured(cells: Sequence[Cell], runs: int, path: Path) -> Report:
    absent = missing()
    if absent:
        print(f"Apache Kafka needs {absent}: Semel runs alone", file=sys.stderr)
    report = asyncio.run(measured(cells, Pace(runs=runs), contestants(absent)))
    write_report(report, path)
    print(f"written: {path}", file=sys.stderr)
    return report


def contestants(absent: str | None) -> Sequence[Contestant]:
    """Return the contenders that can take part if something is missing."""
    return (Contestant.SEMEL,) if absent else tuple(Contestant)


async def measured(cells: Sequence[Cell], pace: Pace, present: Sequence[Contestant]) -> Report:
    """Start everything, and run the cells. Raises KafkaError."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="semel-bench-")))
        bounds = await limits(folder)
        up = await stack.enter_async_context(running({each.system for each in present}, folder))
        idle = {
            f"{system} {name}": resident_mib(pid)
            for system, each in up.items()
            for name, pid in each.pids.items()
        }
        systems = {each: up[each.system] for each in present}
        harness = await stack.enter_async_context(
            Harness(systems, client_commands(present, systems))
        )
        await harness.warm_up(pace.start_s)
        if any(cell.reads for cell in cells):
            await harness.fill(pace.source_records)
        found = [await harness.measure(cell, pace) for cell in cells]
        return Report(
            taken=datetime.now(UTC).date().isoformat(),
            runs=pace.runs,
            machine=machine(),
            versions=versions(kafka=len(present) > 1),
            limits=[Limit(name=bound.name, value=bound.value, unit=bound.unit) for bound in bounds],
            idle_mib=idle,
            cells=found,
            failures=harness.failures,
        )


def client_commands(
    present: Sequence[Contestant], systems: Mapping[Contestant, Running]
) -> Mapping[Contestant, Sequence[str]]:
    """Return how to start each client; builds the one in Java. Raises KafkaError."""
    java = java_client() if Contestant.JAVA in present else ()
    return {each: (*_command(each.client, java), systems[each].bootstrap) for each in present}


def _command(client: ClientName, java: Sequence[str]) -> Sequence[str]:
    if client is ClientName.JAVA:
        return java
    return (sys.executable, "-m", "bench.clients", client)


def _show(report: Report) -> None:
    console = Console(width=_WIDTH)
    console.print(f"{report.taken}: {report.machine}")
    for table in tables(report):
        console.print(_rich(table))
    for failure in report.failures:
        console.print(f"failed, and missing: {failure}")


def _rich(table: Table) -> RichTable:
    shown = RichTable(box=None, title=table.title, title_justify="left")
    for number, heading in enumerate(table.headings):
        shown.add_column(heading, justify="right" if number else "left")
    for row in table.rows:
        shown.add_row(*row)
    return shown


def _write(report: Report) -> None:
    from bench.kafka.charts import draw  # noqa: PLC0415 - a second that no other run needs

    draw(report)
    path_of(report).write_text(page(report), "utf-8")
    print(f"written: {path_of(report)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
