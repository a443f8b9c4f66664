"""What every engine's store of record batches must do, run on each of them."""

from random import Random

import pytest
from journal_harness import (
    PLENTY,
    Engine,
    MemoryEngine,
    batch,
    claimed,
    offsets_read,
)

from semel_runtime.journal import BatchPosition, Journal, StoredBatch


async def store(engine: Engine, *batches: StoredBatch) -> Journal:
    """Append each batch in an append of its own."""
    journal = await claimed(engine)
    for at, one in enumerate(batches):
        await journal.append(at, [b"record"], [one])
    return journal


async def test_batches_of_one_append_come_back_as_they_were(engine: Engine) -> None:
    journal = await claimed(engine)
    batches = [batch(1, 0), batch(2, 0, payload=b""), batch(1, 10, 5, timestamp_ms=-1)]

    await journal.append(0, [b"a", b"b"], batches)

    read = journal.batches.read
    assert await read(1, 0, max_bytes=PLENTY, upto=PLENTY) == [batches[0], batches[2]]
    assert await read(2, 0, max_bytes=PLENTY, upto=PLENTY) == [batches[1]]
    assert await read(3, 0, max_bytes=PLENTY, upto=PLENTY) == []


async def test_reading_starts_with_the_batch_that_holds_the_offset(engine: Engine) -> None:
    journal = await store(engine, batch(1, 0), batch(1, 10), batch(1, 20))

    assert await offsets_read(journal, 0) == [0, 10, 20]
    assert await offsets_read(journal, 9) == [0, 10, 20]
    assert await offsets_read(journal, 10) == [10, 20]
    assert await offsets_read(journal, 29) == [20]
    assert await offsets_read(journal, 30) == []


async def test_reading_in_a_gap_starts_with_the_next_batch(engine: Engine) -> None:
    journal = await store(engine, batch(1, 5, 5), batch(1, 100))

    assert await offsets_read(journal, 0) == [5, 100]
    assert await offsets_read(journal, 10) == [100]


async def test_reading_ends_below_upto(engine: Engine) -> None:
    journal = await store(engine, batch(1, 0), batch(1, 10), batch(1, 20))

    assert await offsets_read(journal, 0, upto=20) == [0, 10]
    assert await offsets_read(journal, 0, upto=21) == [0, 10, 20]
    assert await offsets_read(journal, 10, upto=10) == []


async def test_reading_is_bounded_but_answers_at_least_one_batch(engine: Engine) -> None:
    journal = await store(engine, *(batch(1, at, payload=bytes(94)) for at in range(0, 50, 10)))

    assert await offsets_read(journal, 0, max_bytes=0) == [0]
    assert await offsets_read(journal, 0, max_bytes=999) == [0]
    assert await offsets_read(journal, 0, max_bytes=1_000) == [0, 10]
    assert await offsets_read(journal, 15, max_bytes=1_500) == [10, 20, 30]


async def test_headers_are_read_as_batches_are_but_without_payloads(engine: Engine) -> None:
    journal = await store(engine, *(batch(1, at, payload=b"much") for at in range(0, 50, 10)))

    async def offsets(start: int, *, rows_max: int = 10, upto: int = PLENTY) -> list[int]:
        found = await journal.batches.read_headers(1, start, rows_max=rows_max, upto=upto)
        whole = await journal.batches.read(1, start, max_bytes=PLENTY, upto=upto)
        assert all(not each.payload for each in found)
        assert [each.header for each in found] == [each.header for each in whole[:rows_max]]
        return [each.base_offset for each in found]

    assert await offsets(0) == [0, 10, 20, 30, 40]
    assert await offsets(15, rows_max=2) == [10, 20]
    assert await offsets(15, upto=30) == [10, 20]
    assert await offsets(50) == []


async def test_search_by_time_finds_the_first_batch_with_a_record_that_late(
    engine: Engine,
) -> None:
    journal = await store(
        engine,
        batch(1, 0, timestamp_ms=100),
        batch(1, 10, timestamp_ms=300),
        batch(1, 20, timestamp_ms=200),
    )
    first_at = journal.batches.first_at

    found = await first_at(1, 150, upto=PLENTY)

    assert found == BatchPosition(base_offset=10, max_timestamp_ms=300)
    assert (await first_at(1, 100, upto=PLENTY)) == BatchPosition(
        base_offset=0, max_timestamp_ms=100
    )
    assert await first_at(1, 301, upto=PLENTY) is None
    assert await first_at(1, 150, upto=10) is None
    assert await first_at(2, 0, upto=PLENTY) is None


async def test_deletion_goes_from_the_oldest_on_in_bounded_steps(engine: Engine) -> None:
    journal = await store(engine, *(batch(1, at) for at in range(0, 50, 10)), batch(2, 0))
    delete = journal.batches.delete

    assert await delete(1, before=35, rows_max=2, bytes_max=PLENTY) == 2
    assert await offsets_read(journal, 0) == [20, 30, 40]
    assert await delete(1, before=35, rows_max=2, bytes_max=PLENTY) == 1
    assert await delete(1, before=35, rows_max=2, bytes_max=PLENTY) == 0
    assert await offsets_read(journal, 0) == [30, 40]
    assert len(await journal.batches.read(2, 0, max_bytes=PLENTY, upto=PLENTY)) == 1


async def test_batches_are_looked_at_from_the_end_back_for_late_ones(
    engine: Engine,
) -> None:
    journal = await claimed(engine)
    times_ms = (7, 9, 3, 9, 2, 1, 8)
    batches = [batch(1, at * 10, timestamp_ms=time_ms) for at, time_ms in enumerate(times_ms)]
    await journal.append(0, [b"record"], batches)

    found: list[tuple[int, int]] = []
    upto: int | None = 60
    while upto is not None:
        later = await journal.batches.later(1, 3, upto=upto)
        assert sorted(later.found, key=lambda each: -each.max_timestamp_ms) == list(later.found)
        found += [(each.base_offset, each.max_timestamp_ms) for each in later.found]
        upto = later.upto
    assert sorted(found) == [(0, 7), (10, 9), (20, 3), (30, 9)]


async def test_a_deletion_ends_with_the_batch_that_reaches_its_bytes(engine: Engine) -> None:
    journal = await claimed(engine)
    batches = [batch(1, at, 1, payload=bytes(size)) for at, size in enumerate((10, 10, 50, 10, 10))]
    await journal.append(0, [b"record"], batches)
    delete = journal.batches.delete

    assert await delete(1, before=PLENTY, rows_max=100, bytes_max=20) == 2
    assert await delete(1, before=PLENTY, rows_max=100, bytes_max=20) == 1
    assert await delete(1, before=PLENTY, rows_max=100, bytes_max=1) == 1
    assert await delete(1, before=PLENTY, rows_max=1, bytes_max=20) == 1
    assert await delete(1, before=PLENTY, rows_max=100, bytes_max=20) == 0
    assert await journal.batches.give_back() is False


async def test_deleted_partition_is_empty(engine: Engine) -> None:
    journal = await store(engine, batch(1, 0), batch(1, 10))

    assert await journal.batches.delete(1, before=PLENTY, rows_max=100, bytes_max=PLENTY) == 2

    assert await offsets_read(journal, 0) == []


@pytest.mark.parametrize("seed", range(5))
async def test_every_engine_reads_the_same_as_memory(engine: Engine, seed: int) -> None:
    """Any batches with any gaps, read from anywhere within any bounds."""
    random = Random(seed)
    batches = any_batches(random)
    stores = [await store(each, *batches) for each in (engine, MemoryEngine())]

    for _ in range(200):
        offset, upto, max_bytes = (
            random.randrange(120),
            random.randrange(120),
            random.randrange(4_000),
        )
        read = [await offsets_read(one, offset, upto=upto, max_bytes=max_bytes) for one in stores]
        found = [await one.batches.first_at(1, offset, upto=upto) for one in stores]
        assert read[0] == read[1], (offset, upto, max_bytes)
        assert found[0] == found[1], (offset, upto)


def any_batches(random: Random) -> list[StoredBatch]:
    """Make batches of partition 1 in order, with gaps; another partition's lie between them."""
    batches: list[StoredBatch] = []
    at = 0
    for _ in range(20):
        at += random.choice([0, 0, 3])
        count = random.randrange(1, 6)
        payload = bytes(random.randrange(30))
        batches.append(batch(1, at, count, timestamp_ms=random.randrange(120), payload=payload))
        batches.append(batch(2, at, count))
        at += count
    return batches
