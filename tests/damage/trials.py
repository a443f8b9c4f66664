"""One trial: bits flip in one page of a copy of a volume, and everything is asked of the service.

No answer may be wrong. Damage that neither the service nor a reader notices must be harmless: the
service answers everything as before.
"""

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random

from damage.broker import PARTITIONS, SERVICE, serving
from damage.pages import PageKind, flip, places
from damage.reading import Partition, read
from damage.volumes import (
    COORDINATOR,
    GROUP,
    everything,
    make_broker,
    make_coordinators,
)
from semel_local.checking import check
from semel_local.errors import LocalClusterError
from semel_runtime.journal import JournalError
from semel_runtime.journal.contract import Entry
from semel_runtime.journal.sqlite import SqliteJournal

SERVICES = (SERVICE, COORDINATOR, GROUP)
_BITS_MAX = 3
_PATIENCE_S = 60
"""A service that neither serves nor refuses within it hangs."""


class Outcome(StrEnum):
    """The effect of the damage."""

    REFUSED = "refused at start"
    ERROR = "error when read"
    WRONG = "served wrong"
    RIGHT = "served right"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One trial and its result."""

    service: str
    kind: PageKind
    seed: int
    outcome: Outcome
    checked: bool
    """Whether `semel check` finds the damage."""
    detail: str


@dataclass(frozen=True, slots=True)
class Volumes:
    """Sound volumes, in folders by their services' names, and their content."""

    folder: Path
    partitions: list[Partition]
    entries: Mapping[str, list[Entry]]

    @classmethod
    async def make(cls, folder: Path) -> "Volumes":
        """Write them."""
        partitions = await make_broker(folder / SERVICE)
        return cls(folder, partitions, await make_coordinators(folder))

    def kinds(self, service: str) -> list[PageKind]:
        """Return the kinds of pages that a volume has."""
        found = places(self.folder / service)
        return [kind for kind, spans in found.items() if spans]


async def attempt(volumes: Volumes, service: str, kind: PageKind, seed: int, work: Path) -> Trial:
    """Make one trial in the folder ``work``, which is emptied."""
    random = Random(f"{service} {kind} {seed}")
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(volumes.folder / service, work)
    file, span = random.choice(places(work)[kind])
    where = flip(file, span, random, bits=random.randint(1, _BITS_MAX))
    checked = _is_found(work)
    async with asyncio.timeout(_PATIENCE_S):
        if service == SERVICE:
            outcome, detail = await broker_outcome(volumes.partitions, work)
        else:
            outcome, detail = await _start(volumes.entries[service], service, work)
    return Trial(
        service=service,
        kind=kind,
        seed=seed,
        outcome=outcome,
        checked=checked,
        detail=f"bits {where}: {detail}",
    )


def _is_found(folder: Path) -> bool:
    """Whether `semel check` ends with status 1."""
    try:
        return bool(check(folder).damage)
    except LocalClusterError:
        return True


async def broker_outcome(truth: list[Partition], folder: Path) -> tuple[Outcome, str]:
    """Start a broker on a folder and read all its partitions; return the result and its detail."""
    try:
        async with (
            await SqliteJournal.open(folder, service=SERVICE) as journal,
            serving(journal) as broker,
        ):
            found = [await read(broker, number, truth[number]) for number in range(PARTITIONS)]
    except JournalError as error:
        return Outcome.REFUSED, str(error)
    wrong = "; ".join(filter(None, (a.differs_from(b) for a, b in zip(found, truth, strict=True))))
    if wrong:
        return Outcome.WRONG, wrong
    errors = [each for partition in found for each in partition.errors]
    return (Outcome.ERROR, errors[0]) if errors else (Outcome.RIGHT, "")


async def _start(truth: list[Entry], service: str, folder: Path) -> tuple[Outcome, str]:
    try:
        async with await SqliteJournal.open(folder, service=service) as journal:
            found = await everything(journal)
    except JournalError as error:
        return Outcome.REFUSED, str(error)
    if found != truth:
        return Outcome.WRONG, f"{len(found)} entries, not the {len(truth)} that were written"
    return Outcome.RIGHT, ""
