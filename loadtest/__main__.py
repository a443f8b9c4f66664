"""``python -m loadtest``: the runs of ``thresholds.toml``, with ghz, in one table."""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiosemel import SemelClient
from loadtest.check import Report, check, percentile_ms, rate
from loadtest.effects import Effects
from loadtest.page import page
from loadtest.prepare import Preparation
from loadtest.scenarios import REPORTS, ROOT, SCENARIOS, Run, read_config, read_runs
from loadtest.target import Target, find_target
from semel_local import ProcessCluster


def main() -> int:
    """Run, print and check; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m loadtest", description=__doc__)
    parser.add_argument("scenarios", nargs="*", help="only these, in the order of the thresholds")
    parser.add_argument("--ghz", default="ghz", help="the program (%(default)s)")
    parser.add_argument("--bootstrap", help="a cluster that runs; else one is started here")
    arguments = parser.parse_args()
    runs = read_runs()
    wanted = arguments.scenarios or [run.scenario for run in runs]
    chosen = [run for run in runs if run.scenario in wanted]
    if not chosen or set(wanted) - {run.scenario for run in chosen}:
        parser.error(f"scenarios are {', '.join(sorted({run.scenario for run in runs}))}")
    if shutil.which(arguments.ghz) is None:
        parser.error(
            f"--ghz is {arguments.ghz}: there is no such program (`make loadtest` builds it)"
        )
    failed = asyncio.run(_run_all(chosen, arguments.ghz, arguments.bootstrap))
    print(f"Pages and ghz's reports: {REPORTS.relative_to(ROOT)}")
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return bool(failed)


@asynccontextmanager
async def _cluster(bootstrap: str | None) -> AsyncIterator[str]:
    if bootstrap:
        yield bootstrap
        return
    with tempfile.TemporaryDirectory() as folder:
        async with ProcessCluster(Path(folder)) as cluster:
            yield cluster.bootstrap


async def _run_all(runs: list[Run], ghz: str, bootstrap: str | None) -> int:
    """Return how many runs have something wrong."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    failed = 0
    async with (
        _cluster(bootstrap) as address,
        SemelClient(address) as client,
        find_target(address) as target,
    ):
        preparation, effects = Preparation(target), Effects(client, target)
        print(_row("run", "calls", "operations/s", "p50 ms", "p95 ms", "p99 ms", ""))
        for run in runs:
            await preparation.prepare(run)
            await effects.begin(run)
            report = await _ghz(ghz, run, target)
            wrong = check(report, run) + await effects.check(run, preparation.groups)
            failed += bool(wrong)
            _show(run, report, wrong)
    return failed


async def _ghz(ghz: str, run: Run, target: Target) -> Report:
    """Run ghz, and keep its report."""
    path = REPORTS / f"{run.name}.json"
    path.unlink(missing_ok=True)
    options = {
        "--config": SCENARIOS / f"{run.scenario}.json", "--concurrency": run.concurrency,
        "--connections": min(run.concurrency, 4), "--total": run.calls, "--format": "json",
        "--output": path,
    }  # fmt: skip
    words = [f"{name}={value}" for name, value in options.items()]
    address = target.address(str(read_config(run.scenario)["call"]))
    process = await asyncio.create_subprocess_exec(ghz, *words, address, cwd=ROOT)
    if await process.wait() or not path.exists():
        raise SystemExit(f"ghz did not run {run.name}")
    report: Report = json.loads(path.read_text("utf-8"))
    return report


def _show(run: Run, report: Report, wrong: list[str]) -> None:
    times = (f"{percentile_ms(report, each):.1f}" for each in (50, 95, 99))
    figures = (str(report["count"]), f"{rate(report, run):,.0f}", *times)
    print(_row(run.name, *figures, "; ".join(wrong) or "ok"), flush=True)
    details = json.loads((REPORTS / f"{run.name}.json").read_text("utf-8"))["details"] or ()
    (REPORTS / f"{run.name}.html").write_text(page(run, report, details, wrong), "utf-8")


def _row(*cells: str) -> str:
    return "{:<32} {:>8} {:>12} {:>10} {:>10} {:>10}  {}".format(*cells)


if __name__ == "__main__":
    sys.exit(main())
