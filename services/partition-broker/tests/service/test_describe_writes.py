"""DescribeWrites: the records of one transaction, from an offset or a time up to its marker."""

import pytest
from broker_harness import OTHER, PRODUCER
from broker_service import ABORT, COMMIT, Broker, batch, code, plain, serving
from compacted_topic import coordinators, keyed

from semel.broker.v1 import producers_pb2 as wire
from semel.broker.v1.broker_pb2 import DeleteRecordsPartition, DeleteRecordsRequest
from semel.common.v1.participants_pb2 import TransactionResult
from semel_broker.rpc import describe_writes
from semel_broker.storage.log_reader import LogReader
from semel_common.error_codes import ErrorCode
from semel_common.errors import InvalidRequestError
from semel_common.wire.methods import DELETE_RECORDS, DESCRIBE_WRITES
from semel_runtime.journal.journal_errors import JournalError
from semel_runtime.testing.volume import MemoryVolume

NOTHING = (-1, -1, 0, -1)


async def writes(
    broker: Broker,
    *,
    epoch: int = 0,
    producer_id: int = PRODUCER,
    from_offset: int | None = 0,
    from_time_ms: int | None = None,
    topic: str = "orders",
) -> wire.PartitionWrites:
    """Look in partition 0."""
    place = wire.DescribeWritesPartition(topic=topic)
    if from_time_ms is not None:
        place.from_time_ms = from_time_ms
    elif from_offset is not None:
        place.from_offset = from_offset
    request = wire.DescribeWritesRequest(
        producer_id=producer_id, producer_epoch=epoch, partitions=[place]
    )
    (found,) = (await broker.call(DESCRIBE_WRITES, request)).partitions
    return found


def shown(found: wire.PartitionWrites) -> tuple[int, int, int, int]:
    return found.first_offset, found.last_offset, found.record_count, found.marker_offset


@pytest.mark.parametrize("outcome", [COMMIT, ABORT])
async def test_an_ended_transaction_is_found_up_to_its_marker(
    broker: Broker, outcome: TransactionResult.ValueType
) -> None:
    await broker.produce(plain(b"before"))
    await broker.produce(batch(b"a", b"b", timestamps_ms=[2_000, 3_000]))
    await broker.produce(batch(b"of another", producer_id=OTHER))
    await broker.produce(batch(b"c", b"d", sequence=2))
    await broker.end(outcome)
    await broker.produce(batch(b"of the next one", epoch=1))
    found = await writes(broker)
    assert shown(found) == (1, 5, 4, 6)
    assert found.first_timestamp_ms == 3_000
    assert (found.next_offset, found.end_offset) == (7, 8)
    assert shown(await writes(broker, epoch=1)) == (7, 7, 1, -1)
    assert shown(await writes(broker, producer_id=OTHER)) == (3, 3, 1, -1)


async def test_an_open_transaction_has_no_marker_and_the_whole_log_is_looked_at(
    broker: Broker,
) -> None:
    await broker.produce(batch(b"open"))
    await broker.produce(plain(b"behind"))
    found = await writes(broker)
    assert shown(found) == (0, 0, 1, -1)
    assert (found.next_offset, found.end_offset) == (2, 2)


async def test_a_batch_without_a_transaction_is_none_of_a_transaction(broker: Broker) -> None:
    """An idempotent producer has a producer id and an epoch, too."""
    await broker.produce(batch(b"idempotent", transactional=False))
    assert shown(await writes(broker)) == NOTHING


async def test_a_look_begins_at_the_offset_or_at_the_time(broker: Broker) -> None:
    await broker.produce(batch(b"a", timestamps_ms=[1_000]))
    await broker.produce(batch(b"b", sequence=1, timestamps_ms=[2_000]))
    assert shown(await writes(broker, from_offset=1)) == (1, 1, 1, -1)
    assert shown(await writes(broker, from_time_ms=1_500)) == (1, 1, 1, -1)
    assert shown(await writes(broker, from_time_ms=0)) == (0, 1, 2, -1)
    late = await writes(broker, from_time_ms=2_001)
    assert (shown(late), late.next_offset) == (NOTHING, 2)


async def test_a_call_looks_at_a_bounded_number_of_batches(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(describe_writes, "_BATCHES_PER_CALL", 2)
    for number in range(5):
        await broker.produce(batch(b"a", sequence=number))
    await broker.end(COMMIT)
    counted, at, calls, marker_offset = 0, 0, 0, -1
    while marker_offset < 0:
        found = await writes(broker, from_offset=at)
        counted, at, calls = counted + found.record_count, found.next_offset, calls + 1
        marker_offset = found.marker_offset
    assert (counted, calls, marker_offset) == (5, 3, 5)


async def test_records_that_compaction_has_removed_count_as_written(volume: MemoryVolume) -> None:
    async with serving(volume, coordinators=coordinators()) as broker:
        await broker.produce(keyed((b"k", b"1")))
        await broker.produce(keyed((b"k", b"2")))
        await broker.compact()
        assert shown(await writes(broker)) == NOTHING


async def test_a_look_goes_to_the_end_where_compaction_has_left_nothing(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await broker.produce(batch(b"a"))

    async def find_none(*_: object, **__: object) -> tuple[()]:
        return ()

    monkeypatch.setattr(LogReader, "read_headers", find_none)
    found = await writes(broker)
    assert (shown(found), found.next_offset, found.end_offset) == (NOTHING, 1, 1)


async def test_a_look_begins_no_earlier_than_the_log(broker: Broker) -> None:
    await broker.produce(batch(b"a"))
    await broker.end(COMMIT)
    await broker.produce(batch(b"b", epoch=1))
    cut = DeleteRecordsPartition(topic="orders", partition=0, before_offset=2)
    await broker.call(DELETE_RECORDS, DeleteRecordsRequest(partitions=[cut]))
    assert shown(await writes(broker)) == NOTHING
    assert shown(await writes(broker, epoch=1)) == (2, 2, 1, -1)


async def test_an_unknown_partition_is_refused_alone(broker: Broker) -> None:
    await broker.produce(batch(b"a"))
    request = wire.DescribeWritesRequest(
        producer_id=PRODUCER,
        partitions=[
            wire.DescribeWritesPartition(topic="no-such-topic", from_offset=0),
            wire.DescribeWritesPartition(topic="orders", from_offset=0),
        ],
    )
    unknown, known = (await broker.call(DESCRIBE_WRITES, request)).partitions
    assert code(unknown) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert known.record_count == 1


async def test_a_wrong_call_is_refused(broker: Broker) -> None:
    with pytest.raises(InvalidRequestError, match="neither from_offset nor from_time_ms is set"):
        await writes(broker, from_offset=None)
    with pytest.raises(InvalidRequestError, match="from_offset is -1"):
        await writes(broker, from_offset=-1)
    with pytest.raises(InvalidRequestError, match="from_time_ms is -1"):
        await writes(broker, from_time_ms=-1)
    with pytest.raises(InvalidRequestError, match="producer_id is 0"):
        await writes(broker, producer_id=0)
    with pytest.raises(InvalidRequestError, match="partitions has 0"):
        await broker.call(DESCRIBE_WRITES, wire.DescribeWritesRequest(producer_id=1))


async def test_a_log_that_cannot_be_read_is_named_as_such(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await broker.produce(batch(b"a"))

    async def fail(*_: object, **__: object) -> None:
        raise JournalError("damaged")

    monkeypatch.setattr(broker.app._environment.journal.batches, "read_headers", fail)
    assert code(await writes(broker)) == ErrorCode.KAFKA_STORAGE_ERROR
