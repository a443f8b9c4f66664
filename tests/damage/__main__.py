"""``python -m damage``: as many trials as wanted, as a table by kind of page."""

import argparse
import asyncio
import logging
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog

from damage.pages import PageKind
from damage.trials import SERVICES, Outcome, Trial, Volumes, attempt

_WIDTHS = (-20, 7, 8, 8, 8, 8, 10, 8)


def main() -> int:
    """Run the trials, print their results, and return whether a service served a wrong record."""
    parser = argparse.ArgumentParser(prog="damage", description=__doc__)
    parser.add_argument("--trials", type=int, default=20, help="of each kind, of each service")
    parser.add_argument("--seed", type=int, default=0, help="begin with this seed")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with TemporaryDirectory() as folder:
        trials = asyncio.run(_try(Path(folder), range(options.seed, options.seed + options.trials)))
    _show(trials)
    return any(trial.outcome is Outcome.WRONG for trial in trials)


async def _try(folder: Path, seeds: range) -> list[Trial]:
    volumes = await Volumes.make(folder)
    return [
        await attempt(volumes, service, kind, seed, folder / "work")
        for service in SERVICES
        for kind in volumes.kinds(service)
        for seed in seeds
    ]


def _row(*cells: str | int) -> str:
    widths = zip(cells, _WIDTHS, strict=True)
    return " ".join(
        str(cell).ljust(-width) if width < 0 else str(cell).rjust(width) for cell, width in widths
    )


def _show(trials: list[Trial]) -> None:
    print(_row("page", "trials", "refused", "error", "wrong", "right", "unchecked", ""))
    for kind in PageKind:
        of_kind = [trial for trial in trials if trial.kind is kind]
        counts = Counter(each.outcome for each in of_kind)
        missed = sum(not each.checked for each in of_kind if each.outcome is not Outcome.RIGHT)
        found = sum(each.checked for each in of_kind if each.outcome is Outcome.RIGHT)
        print(_row(kind, len(of_kind), *(counts[each] for each in Outcome), missed, f"+{found}"))
    for trial in trials:
        if trial.outcome is Outcome.WRONG or (
            trial.outcome is not Outcome.RIGHT and not trial.checked
        ):
            print(trial)


if __name__ == "__main__":
    sys.exit(main())
