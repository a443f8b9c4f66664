"""``python -m crashes``: jobs that crash, and a table; exit status 1 if a topic is not exact."""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from cluster import cluster

from crashes.scenarios import BATCHES, ROWS, SCENARIOS, Report, Stage, run_scenario


def main() -> int:
    """Run scenarios, and tell what came of each."""
    parser = argparse.ArgumentParser(prog="crashes", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="scenario", help=f"of {', '.join(SCENARIOS)}")
    parser.add_argument("--seed", type=int, default=0, help="where faults strike")
    parser.add_argument("--batches", type=int, default=BATCHES, help="micro-batches of a job")
    parser.add_argument("--rows", type=int, default=ROWS, help="records of a micro-batch")
    given = parser.parse_args()
    unknown = set(given.names) - set(SCENARIOS)
    if unknown:
        parser.error(f"no scenario is called {', '.join(sorted(unknown))}")
    folder = Path(tempfile.mkdtemp(prefix="semel-crashes-"))
    print(f"seed {given.seed}, {given.batches} micro-batches of {given.rows} records; {folder}")
    reports = []
    with cluster(folder / "semel") as semel:
        for name in given.names or SCENARIOS:
            began = time.monotonic()
            stage = Stage(
                name=name,
                semel=semel,
                source=semel.topic(4, "source"),
                folder=folder / name,
                random=Random(f"{given.seed} {name}"),
                batches=given.batches,
                rows=given.rows,
            )
            reports.append(run_scenario(stage))
            _tell(reports[-1], time.monotonic() - began)
    if all(report.is_right for report in reports):
        shutil.rmtree(folder)
        return 0
    return 1


def _tell(report: Report, took_s: float) -> None:
    verdict = "right" if report.is_right else "WRONG"
    if report.is_control:
        verdict += " (must find duplicates)"
    notes = ", ".join(f"{count} {what}" for what, count in sorted(report.notes.items()))
    print(
        f"{report.name:13} {verdict}: {report.missing} missing, {report.doubled} doubled,"
        f" {report.discarded} discarded; {report.runs} runs, {notes or 'no faults'};"
        f" {took_s:.0f} s",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
