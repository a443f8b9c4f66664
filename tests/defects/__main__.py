"""``python -m defects``: the seed and the rule by which the simulation finds each defect."""

import argparse
import os
import sys
import time
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pool

from defects import DEFECTS, OF_A_JOURNAL
from defects.hunt import SEEDS_MAX, hunt, hunt_alone


@dataclass(frozen=True, slots=True)
class Found:
    """How the search for one defect went."""

    name: str
    seed: int | None
    violation: str
    seconds: float


def main() -> int:
    """Hunt, and answer whether a defect was not found."""
    parser = argparse.ArgumentParser(prog="defects", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of these defects only")
    parser.add_argument("--seeds", type=int, default=SEEDS_MAX, help="look in so many seeds")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    options = parser.parse_args()
    names = options.names or list(DEFECTS)
    missed = 0
    with Pool(options.processes) as pool:
        for found in pool.imap(partial(_search, seeds=options.seeds), names, chunksize=1):
            missed += found.seed is None
            seed = "not found" if found.seed is None else f"seed {found.seed}"
            print(
                f"{found.name:28} {seed:10} {found.seconds:6.1f} s  {found.violation}", flush=True
            )
    print(f"{len(names) - missed} of {len(names)} defects found")
    return bool(missed)


def _search(name: str, *, seeds: int) -> Found:
    began = time.perf_counter()
    if name in OF_A_JOURNAL:
        seed, violation = hunt_alone(name, seeds) or (None, "")
        return Found(name, seed, violation[:150], time.perf_counter() - began)
    report = hunt(name, seeds)
    seconds = time.perf_counter() - began
    if report is None:
        return Found(name, None, "", seconds)
    return Found(name, report.seed, _short(report.violations[0]), seconds)


def _short(violation: str) -> str:
    """Return the line that names the fault: the first of a broken rule, the last of a traceback."""
    first, *_, last = violation.splitlines() * 2
    return (last if "Traceback" in violation else first)[:150]


if __name__ == "__main__":
    sys.exit(main())
