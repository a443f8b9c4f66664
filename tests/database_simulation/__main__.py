"""``python -m database_simulation``: many seeds, one with every event, or planted defects."""

import argparse
import sys
import time
from multiprocessing import Pool

from database_simulation.planted import DEFECTS, hunt
from database_simulation.run import Report, simulate


def main() -> int:
    """Run, and answer whether nothing was found."""
    parser = argparse.ArgumentParser(prog="database_simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one seed")
    parser.add_argument("--verbose", action="store_true", help="print every event")
    parser.add_argument("--seeds", type=int, default=100, help="run so many seeds")
    parser.add_argument("--from", type=int, default=0, dest="first", help="begin with this one")
    parser.add_argument("--defects", nargs="*", metavar="NAME", help="look for planted defects")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    if options.seed is not None:
        report = simulate(options.seed, print if options.verbose else None)
        _tell(report)
        print(
            f"{report.transactions} transactions, {report.commits} commits of the database,"
            f" {report.doubts} in doubt, {report.faults} faults, {report.refusals} refusals,"
            f" {report.steps} steps, {report.virtual_s:.0f} s"
        )
        return bool(report.violations)
    if options.defects is not None:
        return _hunt(options.defects or list(DEFECTS), options.processes)
    began = time.perf_counter()
    failed = commits = doubts = faults = refusals = 0
    with Pool(options.processes) as pool:
        seeds = range(options.first, options.first + options.seeds)
        for report in pool.imap_unordered(simulate, seeds, chunksize=1):
            failed += bool(report.violations)
            commits += report.commits
            doubts += report.doubts
            faults += report.faults
            refusals += report.refusals
            _tell(report)
    seconds = time.perf_counter() - began
    print(
        f"{options.seeds} seeds from {options.first}: {failed} failed, {commits} commits of the"
        f" database, {doubts} in doubt, {faults} faults, {refusals} refusals after restores,"
        f" in {seconds:.1f} s"
    )
    return bool(failed)


def _hunt(names: list[str], processes: int) -> int:
    missed = 0
    with Pool(processes) as pool:
        for name, report in zip(names, pool.imap(hunt, names, chunksize=1), strict=True):
            missed += report is None
            found = "not found" if report is None else f"seed {report.seed:3}"
            says = "" if report is None else report.violations[0].splitlines()[-1][:120]
            print(f"{name:26} {found}  {says}", flush=True)
    print(f"{len(names) - missed} of {len(names)} defects found")
    return bool(missed)


def _tell(report: Report) -> None:
    if report.violations:
        print(f"seed {report.seed}, step {report.steps}, {report.virtual_s:.3f} s:")
        for line in (*report.trace, *(f"VIOLATION {each}" for each in report.violations)):
            print(f"    {line}")


if __name__ == "__main__":
    sys.exit(main())
