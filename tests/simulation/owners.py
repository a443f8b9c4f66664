"""The owners of one journal, each a process: it appends, reads and deletes, and compares.

After each claim, it compares all that a reader finds with the acknowledged steps.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from dataclasses import dataclass, field
from random import Random

from semel_runtime.journal import JournalError, JournalOpenError, Piece, StoredBatch
from semel_runtime.testing.virtual_time import after
from simulation.disk import SimulatedVolume
from simulation.files import SYNC_MS
from simulation.opening import ObservedJournal, open_journal
from simulation.world import Life

_PARTITIONS = 3
_SMALL = (0, 30, 200, 700, 3_000)
_LARGE = ((0, 30, 200, 700, 3_000, 9_000), (3_000, 9_000))
"""The sizes of payloads: half of the seeds are about the log, half about files of payloads."""
_STEPS = ("append", "read", "delete", "purge", "clear", "rewrite", "replace", "wait")
_SHARES = {False: (40, 12, 3, 1, 0, 3, 2, 3), True: (40, 8, 3, 6, 3, 2, 1, 6)}
_CLEARED_FIRST = 0.2
"""The share of owners with files of payloads that begin with a deletion of everything."""
_QUIET_MS = (0, 0, 40, 300)
"""After a deletion: a loss of power then meets no later sync."""
_PLENTY = 1 << 30


@dataclass(slots=True)
class Facts:
    """The acknowledged steps of all owners."""

    records: dict[int, bytes] = field(default_factory=dict)
    batches: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """Payloads by partition and base offset; a rewrite may have changed them, if it is unknown."""
    sent: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """The same of all appends, acknowledged or not: no reader finds another payload, but "new"."""
    unsure: set[tuple[int, int]] = field(default_factory=set)
    """The batches that a write without an answer may have removed or replaced."""
    ends: list[int] = field(default_factory=lambda: [0] * _PARTITIONS)
    """Above all offsets that were ever used."""
    deleted: list[int] = field(default_factory=lambda: [0] * _PARTITIONS)
    """Below this offset of each partition, batches may be gone."""
    first_offset: int = 0
    """Up to where a snapshot may stand for the records."""
    violations: list[str] = field(default_factory=list)


class _Observer:
    """Of one owner."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def appended(self, at: int, records: int) -> None:
        """See `Observer`."""

    def rewritten(
        self, partition: int, before: Sequence[StoredBatch], after: Sequence[StoredBatch]
    ) -> None:
        """See `Observer`."""

    def broken(self, what: str) -> None:
        """See `Observer`."""
        self._facts.violations.append(what)


class Owner:
    """One process that has the journal until it is deposed, or ends."""

    def __init__(
        self, facts: Facts, volume: SimulatedVolume, random: Random, number: int, *, is_large: bool
    ) -> None:
        self.life = Life("owner", number)
        self._facts = facts
        self._volume = volume
        self._random = random
        self._number = number
        self._at = 0
        self._steps = random.randrange(3, 60)
        self._sizes = random.choice(_LARGE) if is_large else _SMALL
        self._shares = _SHARES[is_large]
        self._is_large = is_large
        self._appending = False

    async def live(self) -> None:
        """Open, claim, look at everything, work, and stop in order."""
        facts = self._facts
        try:
            async with await open_journal(
                self._volume, service="alone", observer=_Observer(facts), random=self._random
            ) as journal:
                claim = await journal.claim(f"token {self._number}")
                self._at = claim.next_offset
                await self._look(journal, claim.first_offset)
                if self._is_large and self._random.random() < _CLEARED_FIRST:
                    await self._clear(journal)
                for _ in range(self._steps):
                    await self._step(journal)
                await self._look(journal, None)
        except JournalOpenError as error:
            facts.violations.append(f"a start is refused: {error}")
        except JournalError as error:
            if "deposed" not in str(error) and not self._is_deposed():
                facts.violations.append(f"a journal broke down: {error!r}")
        except Exception as error:  # noqa: BLE001 - the seed has found it
            facts.violations.append(f"a journal broke down: {error!r}")

    def _is_deposed(self) -> bool:
        (row,) = self._volume.tables.fetch("SELECT token FROM owner")
        return bool(row[0] != f"token {self._number}")

    # -- steps -----------------------------------------------------------------------------------

    async def _step(self, journal: ObservedJournal) -> None:
        match self._random.choices(_STEPS, self._shares)[0]:
            case "append":
                await self._append(journal)
            case "read":
                await self._read(journal, self._random.randrange(_PARTITIONS))
            case "delete":
                await self._delete(journal)
            case "purge":
                await _all(self._purge(journal), self._beside(journal), self._beside(journal))
            case "clear":
                await self._clear(journal)
            case "rewrite":
                await self._rewrite(journal)
            case "replace":
                behind = self._random.randrange(9)
                first_offset = max(self._facts.first_offset, self._at - behind)
                self._facts.first_offset = first_offset
                upto = min(first_offset, self._at)  # A later owner may have gone on meanwhile.
                await journal.replace(upto, self._snapshot(upto))
            case _:
                await after(self._random.choice((1, 40, 300)))

    async def _append(self, journal: ObservedJournal) -> None:
        random, facts = self._random, self._facts
        batches: list[StoredBatch] = []
        for _ in range(random.randrange(3)):
            partition, count = random.randrange(_PARTITIONS), random.randrange(1, 4)
            start = facts.ends[partition]
            facts.ends[partition] += count
            batches.append(
                _batch(partition, start, count, random.randbytes(random.choice(self._sizes)))
            )
            facts.sent[partition, start] = batches[-1].payload
        records = [random.randbytes(random.randrange(30)) for _ in range(random.randrange(1, 4))]
        self._appending = True
        await journal.append(self._at, records, batches)
        self._appending = False
        facts.records |= dict(enumerate(records, self._at))
        facts.batches |= {(each.partition, each.base_offset): each.payload for each in batches}
        self._at += len(records)

    async def _delete(self, journal: ObservedJournal) -> None:
        partition = self._random.randrange(_PARTITIONS)
        before = self._random.randrange(self._facts.ends[partition] + 1)
        deleted = self._facts.deleted
        deleted[partition] = max(deleted[partition], before)
        await journal.batches.delete(partition, before=before, rows_max=4, bytes_max=_PLENTY)

    async def _purge(self, journal: ObservedJournal) -> None:
        """Delete to the end of some deletions, and give space back, as a broker does."""
        random = self._random
        for partition in random.sample(range(_PARTITIONS), random.randint(1, _PARTITIONS)):
            await self._delete_all(journal, partition)
        await self._give_back(journal, steps=random.randrange(9))
        await after(random.choice(_QUIET_MS))

    async def _clear(self, journal: ObservedJournal) -> None:
        """Delete partitions whole, the last beside a step that gives space back; then go on."""
        random, ends = self._random, self._facts.ends
        for _ in range(random.randrange(16)):
            await self._append(journal)
        *first, last = random.sample(range(_PARTITIONS), random.randint(2, _PARTITIONS))
        for partition in first:
            await self._delete_all(journal, partition, ends[partition])
        await self._give_back(journal, steps=99)
        await self._delete_all(journal, last, self._within(last))
        await _all(journal.batches.give_back(), self._delete_soon(journal, last))
        if self._volume.folder.at_next_clearing is not None:
            self._volume.folder.at_next_clearing()
        await after(random.choice(_QUIET_MS))
        await self._give_back(journal, steps=random.randrange(4))
        await self._append(journal)
        await self._give_back(journal, steps=random.randrange(9))

    def _within(self, partition: int) -> int:
        """Draw the offset of one of the first batches of a partition; without any, its end."""
        deleted, end = self._facts.deleted[partition], self._facts.ends[partition]
        left = [at for number, at in self._facts.batches if number == partition and at > deleted]
        return self._random.choice(sorted(left)[1:4] or [end])

    async def _give_back(self, journal: ObservedJournal, *, steps: int) -> None:
        for _ in range(steps):
            if not await journal.batches.give_back():
                break

    async def _delete_soon(self, journal: ObservedJournal, partition: int) -> None:
        await after(self._random.uniform(0, SYNC_MS[1]))
        await self._delete_all(journal, partition, self._facts.ends[partition], rows_max=_PLENTY)

    async def _delete_all(
        self,
        journal: ObservedJournal,
        partition: int,
        before: int | None = None,
        *,
        rows_max: int = 2,
    ) -> None:
        facts = self._facts
        if before is None:
            end = facts.ends[partition]
            before = self._random.choice((end, self._random.randrange(end + 1)))
        facts.deleted[partition] = max(facts.deleted[partition], before)
        while await journal.batches.delete(
            partition, before=before, rows_max=rows_max, bytes_max=_PLENTY
        ):
            pass

    async def _beside(self, journal: ObservedJournal) -> None:
        """Do something of another task of a broker, beside a deletion."""
        random = self._random
        await after(random.choice((0.0, 0.05, 0.5, 2.0)) * random.random())
        match random.choice(("read", "read", "delete", "give back", "append")):
            case "read":
                await self._read(journal, random.randrange(_PARTITIONS), from_start=True)
            case "delete":
                await self._delete_all(journal, random.randrange(_PARTITIONS))
            case "give back":
                await journal.batches.give_back()
            case _:
                if not self._appending:
                    await self._append(journal)

    async def _rewrite(self, journal: ObservedJournal) -> None:
        facts = self._facts
        known = [
            key
            for key in facts.batches
            if key[1] >= facts.deleted[key[0]] and key not in facts.unsure
        ]
        if not known:
            return
        partition, at = self._random.choice(known)
        found = await journal.batches.read(partition, at, max_bytes=1, upto=at + 1)
        if not found:
            if not self._is_deposed():
                facts.violations.append(f"the acknowledged batch at {at} of {partition} is lost")
            return
        new = _batch(partition, at, found[0].record_count, b"new")
        facts.unsure.add((partition, at))
        await journal.batches.rewrite(partition, removed=(), replaced=[new])
        facts.batches[partition, at] = b"new"
        facts.unsure.discard((partition, at))

    async def _snapshot(self, upto: int) -> AsyncIterator[Piece]:
        for number in range(2):
            yield [(upto, b"%d" % number)]

    # -- looks -----------------------------------------------------------------------------------

    async def _look(self, journal: ObservedJournal, first_offset: int | None) -> None:
        """Read all, and compare it with the acknowledged steps."""
        for partition in range(_PARTITIONS):
            await self._read(journal, partition, from_start=True)
        if first_offset is None:
            return
        records = dict(self._facts.records)
        found: dict[int, bytes] = {}
        async for piece in journal.read(first_offset, max_bytes=500):
            found |= dict(piece)
        wrong = [
            at for at, record in records.items() if at >= first_offset and found.get(at) != record
        ]
        if self._is_deposed():
            return  # The next owner may have gone on meanwhile.
        if wrong or first_offset > self._facts.first_offset:
            self._facts.violations.append(f"acknowledged records are lost or changed: {wrong[:5]}")

    async def _read(
        self, journal: ObservedJournal, partition: int, *, from_start: bool = False
    ) -> None:
        """Read a partition from somewhere on: all acknowledged batches are there, in order.

        A batch whose deletion was lost, or is under way, has its payload, or is not there.
        """
        facts = self._facts
        start = facts.deleted[partition]
        start = self._random.randrange(start, max(start, facts.ends[partition]) + 1)
        start = 0 if from_start else start
        known = {
            at: payload
            for (number, at), payload in facts.batches.items()
            if number == partition and at >= start
        }
        found: list[StoredBatch] = []
        max_bytes = self._random.choice((2_000, 30_000))
        at = start
        while some := await journal.batches.read(partition, at, max_bytes=max_bytes, upto=_PLENTY):
            found += some
            at = some[-1].base_offset + some[-1].record_count
        offsets = [each.base_offset for each in found]
        payloads = {each.base_offset: each.payload for each in found}
        deleted = self._facts.deleted[partition]
        wrong = [
            at
            for at, payload in known.items()
            if at >= deleted
            and payloads.get(at) != payload
            and (partition, at) not in facts.unsure
            and facts.batches[partition, at] == payload
        ]
        foreign = [
            at
            for at, payload in payloads.items()
            if payload not in (b"new", facts.sent[partition, at])
        ]
        if self._is_deposed():
            return
        if foreign:
            facts.violations.append(f"foreign payloads are read in {partition}: {foreign[:5]}")
        if wrong or offsets != sorted(set(offsets)):
            facts.violations.append(f"acknowledged batches of {partition} are lost: {wrong[:5]}")


async def _all(*works: Coroutine[object, object, object]) -> None:
    """Do some work at the same time; raise the first error when all of it has ended."""
    tasks = [asyncio.create_task(work) for work in works]
    await asyncio.wait(tasks)
    for task in tasks:
        task.result()


def _batch(partition: int, base_offset: int, count: int, payload: bytes) -> StoredBatch:
    return StoredBatch(
        partition=partition,
        base_offset=base_offset,
        record_count=count,
        max_timestamp_ms=base_offset,
        header=b"header",
        payload=payload,
    )
