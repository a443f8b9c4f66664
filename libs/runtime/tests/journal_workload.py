"""Work on a journal that a seed determines: any engine that has made so many steps has one content.

As a program, it works on a data folder until it is killed, and prints each step that is done:

    python libs/runtime/tests/journal_workload.py FOLDER SEED STEPS_BEFORE
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from journal_harness import PLENTY, batch, entries_of

from semel_runtime.journal import Entry, Journal, Piece, StoredBatch
from semel_runtime.journal.sqlite import SqliteJournal, SqliteOptions
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.volume import MemoryVolume

PARTITIONS = 3
OPTIONS = SqliteOptions(
    log_bytes=128 * 1024,
    wal_bytes=1 << 20,
    logged_bytes_max=40_000,
    payload_file_bytes=300_000,
)
"""Small, so that files are written again and again, and the tables are filled often."""
_SIZES = (0, 30, 200, 3_000, 12_000, 90_000)
_LARGE = 4
_STEPS_BEHIND = 30


class Content(NamedTuple):
    """All that a reader finds."""

    first_offset: int
    snapshot: Sequence[Entry]
    records: Sequence[Entry]
    batches: Sequence[Sequence[StoredBatch]]


class Workload:
    """Steps, one after the other."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.steps = 0
        """How many were made."""
        self._at = 0
        self._first_offset = 0
        self._ends = [0] * PARTITIONS
        self._counts: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]
        """How many offsets each batch takes, by its first, whether it is still there or not."""

    async def step(self, journal: Journal) -> None:
        """Make the next step on a claimed journal that has all before it."""
        random = self._random
        self.steps += 1
        match random.choices(
            ["append", "delete", "give back", "rewrite", "replace"], [40, 3, 3, 2, 1]
        )[0]:
            case "append":
                await self._append(journal)
            case "delete":
                await journal.batches.delete(
                    random.randrange(PARTITIONS),
                    before=random.randrange(max(self._ends) + 1),
                    rows_max=random.randrange(1, 9),
                    bytes_max=PLENTY,
                )
            case "give back":
                await journal.batches.give_back()
            case "rewrite":
                await self._rewrite(journal)
            case _:
                behind = random.randrange(_STEPS_BEHIND)
                self._first_offset = max(self._first_offset, self._at - behind)
                await journal.replace(self._first_offset, self._snapshot())

    async def _append(self, journal: Journal) -> None:
        random = self._random
        batches: list[StoredBatch] = []
        size = random.choice(_SIZES[:_LARGE] if random.random() < 0.9 else _SIZES)
        for _ in range(random.randrange(4)):
            partition, count = random.randrange(PARTITIONS), random.randrange(1, 5)
            start = self._ends[partition] + random.choice([0, 0, 0, 2])
            payload = random.randbytes(size)
            batches.append(batch(partition, start, count, timestamp_ms=start, payload=payload))
            self._ends[partition] = start + count
            self._counts[partition][start] = count
        records = [random.randbytes(random.randrange(40)) for _ in range(random.randrange(1, 4))]
        at, self._at = self._at, self._at + len(records)
        await journal.append(at, records, batches)

    async def _rewrite(self, journal: Journal) -> None:
        random = self._random
        partition = random.randrange(PARTITIONS)
        counts = self._counts[partition]
        offsets = random.sample(sorted(counts), min(6, len(counts)))
        if not offsets:
            return
        replaced = [
            batch(partition, at, counts[at], timestamp_ms=1, payload=b"new") for at in offsets[:3]
        ]
        await journal.batches.rewrite(partition, removed=offsets[3:], replaced=replaced)

    async def _snapshot(self) -> AsyncIterator[Piece]:
        for number in range(3):
            yield [(self._first_offset, b"%d" % number * self._random.randrange(99))]


async def content_of(journal: Journal, first_offset: int) -> Content:
    """Read all of a claimed journal."""
    read = journal.batches.read
    return Content(
        first_offset,
        await entries_of(journal.read_snapshot()),
        await entries_of(journal.read(first_offset, max_bytes=PLENTY)),
        [await read(n, 0, max_bytes=PLENTY, upto=PLENTY) for n in range(PARTITIONS)],
    )


class Expected:
    """A journal in memory that follows the work."""

    def __init__(self, seed: int) -> None:
        self.workload = Workload(seed)
        self._journal = MemoryJournal(MemoryVolume())

    async def content(self, steps: int) -> Content:
        """Return the content after so many steps: no fewer than before."""
        claim = await self._journal.claim("expected")
        while self.workload.steps < steps:
            await self.workload.step(self._journal)
        claim = await self._journal.claim("expected")
        return await content_of(self._journal, claim.first_offset)


async def _work_for_ever(folder: Path, seed: int, steps_before: int) -> None:
    expected = Expected(seed)
    await expected.content(steps_before)
    async with await SqliteJournal.open(folder, service="test", options=OPTIONS) as journal:
        await journal.claim(f"worker after {steps_before}")
        while True:
            await expected.workload.step(journal)
            sys.stdout.write(f"{expected.workload.steps}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_work_for_ever(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
