"""`python -m bench [WORKLOAD…]`: run workloads on real processes, and print medians."""

import argparse
import platform
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop
from rich.console import Console

from bench import console, database, deletion, footprint, postgres, semel_alone, written
from bench.measure import Figure, Measured, repeat, show
from bench.tracing.history_instructions import history_instructions
from bench.tracing.instructions import instructions
from bench.tracing.processor_time import processor_time
from semel_local import ProcessCluster

Workload = Callable[[str], Awaitable[list[Figure]]]

STANDALONE = {
    "footprint": footprint.footprint,
    "console": console.console,
    "deletion": deletion.deletion,
    "written": written.written,
    "tracing": processor_time,
    "tracing-instructions": instructions,
    "history-instructions": history_instructions,
    "postgres": postgres.postgres,
    "fail-over": postgres.fail_over,
}
"""Workloads that need no running cluster."""

WORKLOADS: dict[str, Workload] = {
    "many-producers": semel_alone.many_producers,
    "one-producer": semel_alone.one_producer,
    "visible": semel_alone.visible,
    "pipeline": semel_alone.one_record,
    "columns": semel_alone.columns,
    "one-by-one": semel_alone.one_by_one,
    "database": database.database,
}
KNOWN = (*STANDALONE, *WORKLOADS)


def main() -> None:
    """Run what the arguments name, or all that takes seconds, which some standalone ones do not."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("workloads", nargs="*", help=", ".join(KNOWN))
    parser.add_argument("--runs", type=int, default=3, help="runs of each; the median counts")
    parser.add_argument("--brokers", type=int, default=1, help="partition-brokers of the cluster")
    arguments = parser.parse_args()
    names: list[str] = arguments.workloads or ["footprint", *WORKLOADS]
    unknown = [name for name in names if name not in KNOWN]
    if unknown:
        parser.error(f"unknown workload: {', '.join(unknown)}; there is {', '.join(KNOWN)}")
    for option, number in (("--runs", arguments.runs), ("--brokers", arguments.brokers)):
        if number < 1:
            parser.error(f"{option} is {number}, less than 1")
    Console().print(_machine())
    show(uvloop.run(_run(names, runs=arguments.runs, brokers=arguments.brokers)))


async def _run(names: list[str], *, runs: int, brokers: int) -> list[Measured]:
    measured: list[Measured] = []
    for name in names:
        if name in STANDALONE:
            measured += await repeat(STANDALONE[name], runs)
    chosen = [name for name in WORKLOADS if name in names]
    if chosen:
        with tempfile.TemporaryDirectory() as folder:
            async with ProcessCluster(Path(folder), brokers=brokers) as cluster:
                for name in chosen:
                    measured += await _repeat_on(cluster.bootstrap, WORKLOADS[name], runs)
    return measured


async def _repeat_on(bootstrap: str, workload: Workload, runs: int) -> list[Measured]:
    async def run() -> list[Figure]:
        return await workload(bootstrap)

    return await repeat(run, runs)


def _machine() -> str:
    return f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"


if __name__ == "__main__":
    main()
