"""What must be true in the end: each thing once, on both sides, as far as it was decided."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from aiosemel import AfterRestore
from database_simulation.applications import (
    BLOCK,
    BLOCKS,
    EVENTS,
    IN,
    OUT,
    OUTBOX,
    STORE,
    TRANSFORM,
    Ledger,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Both sides at one time. An input is called "partition/offset"."""

    paid: Mapping[str, Sequence[str]]
    """By application: what its database has."""
    waiting: Sequence[str]
    """In the outbox."""
    topics: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By topic: the values that readers of committed records see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Went:
    """How the database went back, if it did."""

    before: Found
    restored: Found | None = None


def problems(found: Found, went: Went, ledger: Ledger) -> list[str]:
    """Return what is wrong."""
    skips = went.restored is not None and ledger.policy is AfterRestore.SKIP
    lost = lost_inputs(went)
    inputs = found.topics[IN]
    wrong = [
        *exactly("store paid", inputs, found.paid[STORE]),
        *exactly("transform paid", set(inputs) - (lost if skips else set()), found.paid[TRANSFORM]),
        *exactly("transform sent", [*inputs, *(() if skips else lost)], found.topics[OUT]),
        *_own_writes("block", found.paid[BLOCK], found.topics[BLOCKS], went),
        *_events(found, went, again=bool(ledger.refusals.get(OUTBOX)) and not skips),
        *_told(found, went, ledger),
    ]
    if lost and not ledger.refusals.get(TRANSFORM):
        wrong.append(f"transform did not stop, and the database has lost {sorted(lost)}")
    return wrong


def lost_inputs(went: Went) -> set[str]:
    """Return the inputs that the transformation had processed, and its database has lost."""
    if went.restored is None:
        return set()
    return set(went.before.paid[TRANSFORM]) - set(went.restored.paid[TRANSFORM])


def exactly(what: str, expected: Iterable[str], found: Iterable[str]) -> Iterator[str]:
    """Compare how often each thing is there."""
    wanted, there = Counter(expected), Counter(found)
    for name in sorted(wanted.keys() | there.keys()):
        if wanted[name] != there[name]:
            yield f"{what} {name} {there[name]} times, not {wanted[name]} times"


def _own_writes(what: str, paid: Sequence[str], sent: Sequence[str], went: Went) -> Iterator[str]:
    """The topic has each write of the database once; after a restore, the lost writes, too."""
    lost: set[str] = set()
    if went.restored is not None:
        lost = set(went.before.paid[BLOCK]) - set(went.restored.paid[BLOCK])
    yield from exactly(f"{what} sent", [*paid, *lost], sent)
    yield from (f"{what} paid {name} again" for name, n in Counter(paid).items() if n > 1)


def _events(found: Found, went: Went, *, again: bool) -> Iterator[str]:
    """Each committed order is sent once; after a restore, the backup's rows that waited, again."""
    expected = Counter(found.paid[OUTBOX])
    if went.restored is not None:
        expected |= Counter(went.before.paid[OUTBOX])
        if again:
            expected += Counter(went.restored.waiting)
    yield from exactly("outbox sent", expected.elements(), found.topics[EVENTS])


def _told(found: Found, went: Went, ledger: Ledger) -> Iterator[str]:
    """A caller that was told about its transaction was told the truth."""
    known = set(went.before.paid[BLOCK]) | set(found.paid[BLOCK])
    for name, committed in ledger.told[BLOCK].items():
        if committed is not (name in known):
            yield f"the caller of {name} was told {committed}"
    sent: dict[str, list[str]] = {}
    for name in found.topics[EVENTS]:
        if ledger.told[OUTBOX].get(name):
            sent.setdefault(name.partition("/")[0], []).append(name)
    if went.restored is None:
        for key, names in sent.items():
            if names != sorted(names, key=lambda name: int(name.partition("/")[2])):
                yield f"events of {key} are out of order: {names}"
    missing = set(ledger.told[OUTBOX]) - set(found.topics[EVENTS])
    yield from (
        f"the caller of {name} was told of its commit, and it is not sent"
        for name in sorted(missing)
    )
