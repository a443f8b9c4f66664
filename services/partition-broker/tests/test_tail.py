"""The ends of the logs in memory: a read there returns the same as the store."""

from collections.abc import AsyncIterator, Sequence
from random import Random

import pytest

from semel_broker.storage.log_tail import TailStore
from semel_runtime.journal.contract import BatchStore, StoredBatch
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.volume import MemoryVolume

EVERYTHING = 1 << 40


def batch(
    partition: int, base_offset: int, count: int = 1, *, payload: bytes = b"x"
) -> StoredBatch:
    return StoredBatch(
        partition=partition,
        base_offset=base_offset,
        record_count=count,
        max_timestamp_ms=0,
        header=b"header",
        payload=payload,
    )


class Unreadable:
    """A store that refuses all reads."""

    async def read(
        self, partition: int, offset: int, *, max_bytes: int, upto: int
    ) -> Sequence[StoredBatch]:
        raise AssertionError(f"offset {offset} of {partition}, {max_bytes}, below {upto}")


class Logs:
    """A journal, and its store with the ends of the logs in memory."""

    def __init__(self, journal: MemoryJournal, max_bytes: int) -> None:
        self.journal = journal
        self.store: BatchStore = journal.batches
        self.tail = TailStore(self.store, max_bytes=max_bytes)
        self.at = 0
        self.ends: dict[int, int] = {}

    async def append(self, *batches: StoredBatch) -> None:
        await self.journal.append(self.at, [b"record"], batches)
        self.at += 1
        self.tail.appended(batches)
        for each in batches:
            self.ends[each.partition] = each.base_offset + each.record_count

    async def check(self, partition: int, offset: int, *, max_bytes: int, upto: int) -> None:
        expected = await self.store.read(partition, offset, max_bytes=max_bytes, upto=upto)
        found = await self.tail.read(partition, offset, max_bytes=max_bytes, upto=upto)
        assert list(found) == list(expected)


@pytest.fixture
async def journal() -> AsyncIterator[MemoryJournal]:
    journal = MemoryJournal(MemoryVolume())
    await journal.claim("owner")
    yield journal
    await journal.close()


async def test_what_was_appended_is_read_without_the_store() -> None:
    tail = TailStore(Unreadable(), max_bytes=10_000)  # type: ignore[arg-type]  # nothing else is asked
    tail.appended([batch(1, 0, 5), batch(2, 0), batch(1, 5, 5)])

    found = await tail.read(1, 7, max_bytes=EVERYTHING, upto=10)

    assert [each.base_offset for each in found] == [5]
    assert list(await tail.read(1, 10, max_bytes=EVERYTHING, upto=10)) == []


async def test_the_oldest_goes_when_there_is_too_much() -> None:
    tail = TailStore(Unreadable(), max_bytes=10_000)  # type: ignore[arg-type]  # nothing else is asked
    for at in range(1_000):
        tail.appended([batch(at % 7, at // 7, payload=bytes(600))])
        assert tail.size_bytes <= 10_000

    assert len(await tail.read(5, 141, max_bytes=EVERYTHING, upto=142)) == 1
    with pytest.raises(AssertionError, match="offset 0 of 5"):
        await tail.read(5, 0, max_bytes=EVERYTHING, upto=142)


async def test_nothing_is_kept_of_no_bytes() -> None:
    tail = TailStore(Unreadable(), max_bytes=0)  # type: ignore[arg-type]  # nothing else is asked
    tail.appended([batch(1, 0)])
    assert tail.size_bytes == 0
    with pytest.raises(AssertionError, match="offset 0 of 1"):
        await tail.read(1, 0, max_bytes=EVERYTHING, upto=1)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("max_bytes", [0, 3_000, EVERYTHING])
async def test_it_answers_as_the_store_does(
    journal: MemoryJournal, seed: int, max_bytes: int
) -> None:
    random = Random(seed)
    logs = Logs(journal, max_bytes)
    for _ in range(300):
        partition = random.randrange(3)
        end = logs.ends.get(partition, 0)
        upto = random.choice((end, random.randint(0, end)))
        match random.randrange(12):
            case 0:
                removed = [random.randint(0, end) for _ in range(random.randint(1, 3))]
                await logs.tail.rewrite(partition, removed=removed, replaced=())
            case 1:
                old = await logs.store.read(partition, 0, max_bytes=EVERYTHING, upto=end)
                if old:
                    chosen = random.choice(old)
                    new = batch(partition, chosen.base_offset, chosen.record_count, payload=b"new")
                    await logs.tail.rewrite(partition, removed=(), replaced=[new])
            case 2:
                await logs.tail.delete(
                    partition, before=upto, rows_max=random.randint(1, 5), bytes_max=EVERYTHING
                )
            case 3 | 4 | 5 | 6:
                gap = random.choice((0, 0, 0, 5))
                payload = bytes(random.randrange(500))
                await logs.append(
                    batch(partition, end + gap, random.randint(1, 9), payload=payload)
                )
            case _:
                size = random.choice((0, 400, EVERYTHING))
                offset = random.randint(0, end + 1)
                await logs.check(partition, offset, max_bytes=size, upto=upto)
