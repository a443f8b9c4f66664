"""What readers and producers notice of compaction: nothing but gaps."""

from collections.abc import AsyncIterator

import pytest
from broker_harness import OTHER, PRODUCER
from broker_service import (
    ABORT,
    COMMIT,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Broker,
    code,
    serving,
)
from compacted_topic import (
    PLAIN,
    control_offsets,
    coordinators,
    keyed,
    records_of,
    state,
    write_some,
)

from semel.broker.v1 import broker_pb2 as wire
from semel.common.v1.participants_pb2 import TransactionResult
from semel.common.v1.records_pb2 import RecordBatch
from semel_common.error_codes import ErrorCode
from semel_common.record_batches.batches import checksum
from semel_runtime.testing.clock import ManualClock
from semel_runtime.testing.volume import MemoryVolume

RETENTION_MS = 86_400_000


@pytest.fixture
async def broker(volume: MemoryVolume) -> AsyncIterator[Broker]:
    """A broker with one compacted partition."""
    async with serving(volume, coordinators=coordinators()) as serving_broker:
        yield serving_broker


# -- readers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("isolation", [READ_COMMITTED, READ_UNCOMMITTED])
async def test_from_every_offset_on_the_same_values_are_read(
    broker: Broker, isolation: wire.IsolationLevel.ValueType
) -> None:
    await write_some(broker)
    end = (await broker.fetch(isolation=READ_UNCOMMITTED)).high_watermark
    before = [await state(broker, offset) for offset in range(end + 1)]

    await broker.compact()

    for offset in range(end + 1):
        assert await state(broker, offset, isolation) == before[offset], offset
    left = records_of(await broker.fetch(isolation=isolation))
    assert left == [(2, b"a", b"2"), (3, b"c", b"2"), (7, b"b", b"3"), (9, b"d", None)]


async def test_a_reader_moves_past_what_is_gone_at_the_end(broker: Broker) -> None:
    await broker.produce(keyed((b"a", b"aborted"), producer_id=PRODUCER))
    await broker.produce(keyed((b"a", b"open"), producer_id=OTHER))
    await broker.end(ABORT)
    await broker.compact()

    result = await broker.fetch()

    assert not result.batches
    assert result.next_offset == result.last_stable_offset == 1


async def test_a_search_by_time_finds_the_records_left(broker: Broker) -> None:
    await broker.produce(keyed((b"a", b"1"), timestamp_ms=100))
    await broker.produce(keyed((b"a", b"2"), timestamp_ms=200))
    await broker.compact()

    found = await broker.list_offset(timestamp_ms=50)
    earliest = await broker.list_offset(spec=wire.OFFSET_SPEC_EARLIEST)

    assert (found.offset, found.timestamp_ms) == (1, 200)
    assert earliest.offset == 0


async def test_plain_records_are_read_over_gaps(broker: Broker) -> None:
    await write_some(broker)
    await broker.compact()

    result = await broker.fetch(plain=True)

    assert [(record.offset, record.key) for record in result.records] == [
        (2, b"a"),
        (3, b"c"),
        (7, b"b"),
        (9, b"d"),
    ]
    assert result.next_offset == result.high_watermark


# -- transactions and producers -------------------------------------------------------------------


async def test_c165_aborted_records_go_first_and_their_marker_later(broker: Broker) -> None:
    await broker.produce(keyed((b"a", b"aborted"), producer_id=PRODUCER))
    await broker.end(ABORT)
    await broker.produce(keyed((b"b", b"1")))

    await broker.compact()
    uncommitted = await broker.fetch(isolation=READ_UNCOMMITTED)
    assert records_of(uncommitted) == [(2, b"b", b"1")]
    assert await control_offsets(broker) == [1]

    broker.clock.advance(RETENTION_MS)
    await broker.produce(keyed((b"b", b"2")))
    await broker.compact()
    assert await control_offsets(broker) == []


@pytest.mark.parametrize("result", [COMMIT, ABORT])
async def test_c165_the_last_sequence_is_kept_though_its_records_go(
    volume: MemoryVolume, result: TransactionResult.ValueType
) -> None:
    clock = ManualClock()
    first = keyed((b"a", b"1"), producer_id=PRODUCER)
    async with serving(volume, clock=clock, coordinators=coordinators()) as broker:
        await broker.produce(first)
        await broker.produce(keyed((b"b", b"1"), producer_id=PRODUCER, sequence=1))
        await broker.end(result)
        await broker.produce(keyed((b"a", b"2"), (b"b", b"2")))
        for _ in range(2):
            await broker.compact()
            clock.advance(RETENTION_MS)
            await broker.produce(keyed((b"c", b"1")))
        left = await broker.fetch(isolation=READ_UNCOMMITTED)
        assert {batch.producer_id for batch in left.batches} == {PLAIN}

    async with serving(volume, clock=clock, coordinators=coordinators()) as broker:
        repeated = await broker.produce(first)
        assert (code(repeated), repeated.base_offset) == (None, 0)
        late = keyed((b"a", b"3"), producer_id=PRODUCER, sequence=2)
        assert code(await broker.produce(late)) == ErrorCode.INVALID_PRODUCER_EPOCH


async def test_an_idempotent_producer_goes_on_where_it_was(volume: MemoryVolume) -> None:
    def batch(sequence: int, value: bytes) -> RecordBatch:
        made = keyed((b"a", value), producer_id=PRODUCER, sequence=sequence)
        made.transactional = False
        made.crc32c = checksum(made, made.payload)
        return made

    async with serving(volume, coordinators=coordinators()) as broker:
        for sequence in range(3):
            await broker.produce(batch(sequence, b"%d" % sequence))
        await broker.produce(keyed((b"a", b"last")))
        await broker.compact()
        assert [each.producer_id for each in (await broker.fetch()).batches] == [PLAIN]

    async with serving(volume, coordinators=coordinators()) as broker:
        assert (await broker.produce(batch(2, b"2"))).base_offset == 2
        assert code(await broker.produce(batch(4, b"4"))) == (
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        )
        assert code(await broker.produce(batch(3, b"3"))) is None


async def test_the_aborted_index_forgets_what_has_gone(broker: Broker) -> None:
    for epoch in range(3):
        await broker.produce(keyed((b"a", b"aborted"), producer_id=PRODUCER, epoch=epoch))
        await broker.end(ABORT, epoch=epoch)
    (log,) = broker.app._machine._logs
    assert len(log.aborted) == 3

    await broker.compact()

    assert len(log.aborted) == 0
    assert records_of(await broker.fetch()) == []
