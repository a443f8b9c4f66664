"""Compaction of a whole broker: readers of both kinds, producers that come again, and kills."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import pytest
from broker_harness import BROKER_ID, OTHER, PRODUCER, image, topic
from broker_service import (
    ABORT,
    COMMIT,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Broker,
    Coordinators,
    code,
    serving,
    turns,
)
from msgspec.structs import replace

from semel.broker.v1 import broker_pb2 as wire
from semel.common.v1.participants_pb2 import TransactionResult
from semel.common.v1.records_pb2 import Codec, RecordBatch
from semel_broker.compaction import passes
from semel_broker.machine.records import LogCompacted, Record
from semel_common.batches import Columns, checksum, decode_records, seal
from semel_common.errors import ErrorCode, KafkaStorageError
from semel_runtime.cluster.image import ClusterImage
from semel_runtime.journal import JournalError, JournalUnknownError, StoredBatch
from semel_runtime.testing.clock import ManualClock
from semel_runtime.testing.controller import ScriptedController
from semel_runtime.testing.network import MemoryNetwork
from semel_runtime.testing.volume import MemoryVolume

RETENTION_MS = 86_400_000
PLAIN = 0


def table(options: Mapping[str, str], version: int = 1) -> ClusterImage:
    """Metadata in which `orders` is compacted as soon as anything is new."""
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
    configs |= options
    orders = replace(topic("orders", BROKER_ID), configs=tuple(sorted(configs.items())))
    return image(version, orders)


def coordinators(**options: str) -> Coordinators:
    """Make coordinators that know of such a topic, with more options."""
    named = {name.replace("_", "."): value for name, value in options.items()}
    return Coordinators(MemoryNetwork(), controller=ScriptedController(table(named)))


@pytest.fixture
async def broker(volume: MemoryVolume) -> AsyncIterator[Broker]:
    """A broker with one compacted partition."""
    async with serving(volume, coordinators=coordinators()) as serving_broker:
        yield serving_broker


def keyed(
    *pairs: tuple[bytes, bytes | None],
    producer_id: int = PLAIN,
    epoch: int = 0,
    sequence: int = 0,
    timestamp_ms: int = 1_000,
    codec: Codec.ValueType = Codec.CODEC_UNSPECIFIED,
) -> RecordBatch:
    """A batch as clients send it, transactional if it has a producer id."""
    return seal(
        Columns(
            values=[value for _, value in pairs],
            keys=[key for key, _ in pairs],
            timestamps_ms=[timestamp_ms] * len(pairs),
            headers={},
        ),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=producer_id != PLAIN,
        codec=codec,
    )


def records_of(result: wire.FetchPartitionResult) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return offset, key and value of each record of an answer."""
    found = []
    for batch in result.batches:
        if not batch.control:
            columns = decode_records(batch)
            offsets = columns.offsets(batch.base_offset)
            found += list(zip(offsets, columns.keys or (), columns.values, strict=True))
    return found


async def state(
    broker: Broker, offset: int = 0, isolation: wire.IsolationLevel.ValueType = READ_COMMITTED
) -> dict[bytes | None, bytes | None]:
    """Return the newest value of each key for who reads from an offset on."""
    read: list[tuple[int, bytes | None, bytes | None]] = []
    result = await broker.fetch(offset, isolation=isolation)
    while result.next_offset > offset:
        read += [each for each in records_of(result) if each[0] >= offset]
        offset = result.next_offset
        result = await broker.fetch(offset, isolation=isolation)
    return {key: value for _, key, value in read}


async def control_offsets(broker: Broker) -> list[int]:
    """Return the offsets of the markers that are left."""
    result = await broker.fetch(isolation=READ_UNCOMMITTED)
    return [batch.base_offset for batch in result.batches if batch.control]


async def write_some(broker: Broker) -> None:
    """Write committed, aborted and plain batches, so that each has something to go."""
    await broker.produce(keyed((b"a", b"1"), (b"b", b"1")))
    await broker.produce(keyed((b"a", b"2"), (b"c", b"2"), producer_id=PRODUCER))
    await broker.end(COMMIT)
    await broker.produce(keyed((b"a", b"aborted"), producer_id=PRODUCER, epoch=1))
    await broker.end(ABORT, epoch=1)
    await broker.produce(keyed((b"b", b"3"), (b"d", b"3"), codec=Codec.CODEC_ZSTD))
    await broker.produce(keyed((b"d", None)))


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


async def test_a_search_by_time_finds_what_is_left(broker: Broker) -> None:
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

    assert [(each.offset, each.key) for each in result.records] == [
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


# -- when ------------------------------------------------------------------------------------------


async def left(broker: Broker) -> list[bytes | None]:
    return [value for _, _, value in records_of(await broker.fetch())]


async def test_a_topic_that_is_not_compacted_is_left_alone(volume: MemoryVolume) -> None:
    options = coordinators(cleanup_policy="delete")
    async with serving(volume, coordinators=options) as broker:
        await write_some(broker)
        before = dict(volume.content.batches)
        await broker.compact()
        assert volume.content.batches == before


async def test_a_log_waits_until_it_is_dirty_enough(volume: MemoryVolume) -> None:
    options = coordinators(min_cleanable_dirty_ratio="0.5")
    async with serving(volume, coordinators=options) as broker:
        await broker.produce(keyed((b"a", b"1"), (b"b", b"1")))
        await broker.compact()
        for value in (b"2", b"3"):
            await broker.produce(keyed((b"a", value)))
            await broker.compact()
            assert await left(broker) == [b"1", b"1", *([b"2"] if value == b"2" else [b"2", b"3"])]
        await broker.produce(keyed((b"a", b"4")))
        await broker.compact()
        assert await left(broker) == [b"1", b"4"]


async def test_a_young_record_is_neither_taken_nor_takes_another(volume: MemoryVolume) -> None:
    clock = ManualClock()
    now_ms = clock.now_ms()
    options = coordinators(min_compaction_lag_ms="1000")
    async with serving(volume, clock=clock, coordinators=options) as broker:
        await broker.produce(keyed((b"a", b"1"), timestamp_ms=now_ms - 1_000))
        await broker.produce(keyed((b"a", b"2"), timestamp_ms=now_ms - 1_000))
        await broker.produce(keyed((b"a", b"3"), timestamp_ms=now_ms - 999))
        await broker.produce(keyed((b"a", b"4"), timestamp_ms=now_ms - 1_000))
        await broker.compact()
        assert await left(broker) == [b"2", b"3", b"4"]
        clock.advance(1)
        await broker.compact()
        assert await left(broker) == [b"4"]


async def test_a_record_that_has_waited_too_long_makes_a_log_due(volume: MemoryVolume) -> None:
    clock = ManualClock()
    now_ms = clock.now_ms()
    options = coordinators(min_cleanable_dirty_ratio="1.0", max_compaction_lag_ms="1000")
    async with serving(volume, clock=clock, coordinators=options) as broker:
        await broker.produce(keyed((b"a", b"1"), timestamp_ms=now_ms))
        await broker.produce(keyed((b"a", b"2"), timestamp_ms=now_ms))
        clock.advance(999)
        await broker.compact()
        assert await left(broker) == [b"1", b"2"]
        clock.advance(1)
        await broker.compact()
        assert await left(broker) == [b"2"]
        await broker.compact()  # Nothing is new.


async def test_memory_for_few_keys_takes_more_passes(volume: MemoryVolume) -> None:
    async with serving(
        volume, coordinators=coordinators(), log_cleaner_dedupe_buffer_size=1 << 16
    ) as broker:
        for value in (b"1", b"2"):
            for start in range(0, 900, 100):
                keys = [b"%d" % key for key in range(start, start + 100)]
                await broker.produce(keyed(*((key, value) for key in keys)))
        for _ in range(5):
            await broker.compact()
        assert await left(broker) == [b"2"] * 900


async def test_the_broker_compacts_by_itself(volume: MemoryVolume) -> None:
    async with serving(volume, coordinators=coordinators(), log_cleaner_backoff_ms=1) as broker:
        await broker.produce(keyed((b"a", b"1"), (b"a", b"2")))
        compacted = asyncio.Event()

        def note(records: Sequence[Record]) -> None:
            if any(isinstance(record, LogCompacted) for record in records):
                compacted.set()

        broker.compactor._runner.on_durable(note)
        async with asyncio.timeout(30):
            await compacted.wait()
        assert await left(broker) == [b"2"]


# -- what may come between ------------------------------------------------------------------------


async def test_killed_at_any_write_of_a_pass_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each write of a pass fails once, with and without its effect; then the next process runs."""
    monkeypatch.setattr(passes, "_STEP_BYTES", 1)
    for applied in (True, False):
        writes = await count_writes()
        assert writes > 5
        for number in range(writes):
            volume = KilledVolume()
            async with serving(volume, coordinators=coordinators()) as broker:
                await write_some(broker)
                before = await state(broker)
                volume.kill_at(number, applied=applied)
                with pytest.raises((JournalUnknownError, KafkaStorageError)):
                    await broker.compact()
            volume.kill_at(None)
            async with serving(volume, coordinators=coordinators()) as broker:
                assert await state(broker) == before
                await broker.compact()
                assert await state(broker) == before
                assert await left(broker) == [b"2", b"2", b"3", None]


class KilledVolume(MemoryVolume):
    """Fails at a write, and then loses power."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0
        self._kill_at: int | None = None

    def kill_at(self, number: int | None, *, applied: bool = False) -> None:
        self._applied = applied
        self._kill_at = None if number is None else self.writes + number

    async def write(self, apply: Callable[[], None]) -> None:
        if self.writes == self._kill_at:
            self.fail_next_write(applied=self._applied)
        self.writes += 1
        await super().write(apply)


async def count_writes() -> int:
    volume = KilledVolume()
    async with serving(volume, coordinators=coordinators()) as broker:
        await write_some(broker)
        before = volume.writes
        await broker.compact()
        return volume.writes - before


async def test_a_pass_ends_when_the_topic_is_not_compacted_any_more(broker: Broker) -> None:
    for value in (b"1", b"2"):
        await broker.produce(keyed((b"a", value)))
    controller = broker.coordinators.controller
    (plan,) = broker.app._machine.logs_to_compact().response
    assert broker.app._machine.is_compacted(plan.log_id)
    controller.publish(table({"cleanup.policy": "delete"}, version=2))
    await turns()
    assert not broker.app._machine.is_compacted(plan.log_id)
    compactor = broker.compactor

    await compactor._pass(plan, plan.last_stable_offset)

    assert await left(broker) == [b"1", b"2"]


async def test_a_pass_over_a_deleted_topic_leaves_nothing_behind(
    broker: Broker, volume: MemoryVolume
) -> None:
    for value in (b"1", b"2"):
        await broker.produce(keyed((b"a", value)))
    (plan,) = broker.app._machine.logs_to_compact().response
    broker.coordinators.controller.publish(image(2))
    await turns(50)

    await broker.compactor._pass(plan, plan.last_stable_offset)

    assert volume.content.batches[plan.log_id] == []
    assert broker.app._machine.compacted(plan.log_id, upto=2, records_left=1).records == ()


async def test_a_log_that_cannot_be_read_does_not_keep_others_from_being_compacted(
    volume: MemoryVolume, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = table({}).topics[0]
    both = replace(table({}), topics=(replace(orders, partitions=orders.partitions * 2),))
    controller = Coordinators(MemoryNetwork(), controller=ScriptedController(both))
    async with serving(volume, coordinators=controller) as broker:
        for partition in range(2):
            for value in (b"1", b"2"):
                await broker.produce(keyed((b"a", value)), partition=partition)
        store = broker.compactor._store
        read = store.read

        async def fail(partition: int, *args: int, **kwargs: int) -> Sequence[StoredBatch]:
            if partition == 0:
                raise JournalError("page 7 is damaged")
            return await read(partition, *args, **kwargs)

        monkeypatch.setattr(store, "read", fail)
        await broker.compact()
        result = await broker.fetch(partition=1)
        assert [value for _, _, value in records_of(result)] == [b"2"]
