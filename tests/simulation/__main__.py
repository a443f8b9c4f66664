"""``python -m simulation``: many seeds over all cores, or one seed with every event."""

import argparse
import dataclasses
import os
import sys
import time
from multiprocessing import Pool

from simulation.report import Report
from simulation.run import simulate


def main() -> int:
    """Run, and answer whether nothing was found."""
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one seed")
    parser.add_argument("--verbose", action="store_true", help="print every event")
    parser.add_argument("--seeds", type=int, default=100, help="run so many seeds")
    parser.add_argument("--from", type=int, default=0, dest="first", help="begin with this one")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    options = parser.parse_args()
    if options.seed is not None:
        report = simulate(options.seed, print if options.verbose else None, digest=True)
        _tell(report)
        print(dataclasses.replace(report, trace=(), violations=()))
        return bool(report.violations)
    return _many(options.first, options.seeds, options.processes)


def _many(first: int, count: int, processes: int) -> int:
    began = time.perf_counter()
    failed = transactions = faults = moves = messages = steps = 0
    with Pool(processes) as pool:
        for report in pool.imap_unordered(simulate, range(first, first + count), chunksize=1):
            transactions += report.transactions
            faults += report.faults
            moves += report.moves
            messages += report.messages
            steps += report.steps
            if report.violations:
                failed += 1
                _tell(report)
    seconds = time.perf_counter() - began
    print(
        f"{count} seeds from {first}: {failed} failed, {transactions} transactions,"
        f" {faults} faults, {moves} moves, {messages} messages, {steps} steps"
        f" in {seconds:.1f} s ({count / seconds:.2f} seeds/s)"
    )
    return bool(failed)


def _tell(report: Report) -> None:
    if report.violations:
        print(f"seed {report.seed}, step {report.steps}, {report.virtual_s:.3f} s:")
        for line in report.trace:
            print(f"    {line}")
        for violation in report.violations:
            print(f"  VIOLATION {violation}")
        print(f"  again: make simulate SEED={report.seed} VERBOSE=1")


if __name__ == "__main__":
    sys.exit(main())
