"""``python -m database_chaos``: calls with a database, killed at each step of theirs.

Exit status 1 if the two sides differ after a kill, or something stays prepared.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from database_chaos.books import DifferenceError
from database_chaos.run import Engine, Report, run
from database_chaos.steps import Call
from semel_local.errors import first_of


def main() -> int:
    """Run, and tell what happened at each step."""
    parser = argparse.ArgumentParser(prog="database_chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="kills at each step")
    parser.add_argument("--engine", type=Engine, choices=tuple(Engine), default=Engine.SQLITE)
    parser.add_argument("--calls", type=Call, choices=tuple(Call), nargs="*", default=tuple(Call))
    parser.add_argument("--seed", type=int, default=0, help="when in its work a process dies")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="semel-database-chaos-") as folder:
        try:
            report = asyncio.run(
                run(
                    options.engine,
                    Path(folder),
                    rounds=options.rounds,
                    seed=options.seed,
                    calls=options.calls,
                )
            )
        except BaseExceptionGroup as group:
            failed = group.subgroup(DifferenceError)
            if failed is None:
                raise
            print(f"FAILED: {first_of(failed)}")
            return 1
    _tell(report, time.monotonic() - began)
    return 0


def _tell(report: Report, took_s: float) -> None:
    for step, tally in report.tallies.items():
        print(
            f"{tally.rounds:4} rounds, {tally.kills:4} kills, equal sides after"
            f" {tally.agreed_s:5.1f} s at most: {step}"
        )
    for call, sums in report.sums.items():
        topic = "" if call is Call.STORE else f", topic {sums.in_topic:,}"
        print(f"{call}: {sums.orders:,} orders, database {sums.in_database:,}{topic}")
    rounds = sum(tally.rounds for tally in report.tallies.values())
    kills = sum(tally.kills for tally in report.tallies.values())
    print(f"{rounds} rounds, {kills} kills: each order once, in {took_s:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
