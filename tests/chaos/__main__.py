"""``python -m chaos``: one run with a report; exit status 1 if anything was found."""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import get_args

import uvloop

from chaos.run import Engine, Report, run


def main() -> int:
    """Run, and tell what came of it."""
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long there are faults")
    parser.add_argument("--seed", type=int, default=0, help="which faults there are")
    parser.add_argument("--interval", type=float, default=0.8, help="seconds between two faults")
    parser.add_argument(
        "--folder", type=Path, help="where everything is kept; a new one if not given"
    )
    parser.add_argument("--engine", choices=get_args(Engine), default="sqlite", help="of journals")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="semel-chaos-"))
    began = time.monotonic()
    report = uvloop.run(
        run(
            folder.absolute(),
            seed=options.seed,
            window_s=options.seconds,
            interval_s=options.interval,
            engine=options.engine,
        )
    )
    _tell(report, options.seconds, time.monotonic() - began)
    if report.violations:
        print(f"history: {report.history}")
    elif options.folder is None:
        shutil.rmtree(folder)
    return bool(report.violations)


def _tell(report: Report, window_s: float, took_s: float) -> None:
    print(f"seed {report.seed}: {window_s:g} s of faults, {took_s:.0f} s in all")
    print(f"faults: {report.faults.total()}")
    for what, number in sorted(report.faults.items()):
        print(f"    {number:6} {what}")
    print(f"kills: {report.kills.total()}")
    for name, number in sorted(report.kills.items()):
        print(f"    {number:6} {name}")
    if report.fail_overs_ms:
        middle, worst = median(report.fail_overs_ms), max(report.fail_overs_ms)
        print(f"primary killed to next commit: median {middle:g} ms, worst {worst} ms")
    elif not report.has_disk_faults:
        print("no C compiler, or no Linux: there were no faults of disks")
    failed = ", ".join(f"{number} {what}" for what, number in report.failed_calls.items())
    print(f"ended by themselves: {report.service_ends} services, {report.client_ends} clients")
    print(f"calls that failed on disk: {failed.replace('_', ' ')}")
    outcomes = ", ".join(f"{number} {what}" for what, number in sorted(report.outcomes.items()))
    print(f"operations: {report.operations} ({outcomes})")
    print(f"transactions: {report.committed} committed, {report.aborted} aborted")
    print(f"joint versions: {report.joint_versions} committed")
    print(f"longest time without progress after the last fault: {report.standstill_ms} ms")
    for violation in report.violations:
        print(f"VIOLATION {violation}")
    print(
        f"verdict: {len(report.violations)} violations" if report.violations else "verdict: passed"
    )


if __name__ == "__main__":
    sys.exit(main())
