"""CountRecords: what a reader has yet to read, and nothing else."""

import pytest
from broker_harness import OTHER
from broker_service import (
    ABORT,
    COMMIT,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Broker,
    batch,
    code,
    plain,
    serving,
    turns,
)
from compacted_topic import coordinators, keyed, records_of, table, write_some

from semel.broker.v1 import broker_pb2 as wire
from semel.common.v1.records_pb2 import RecordBatch, Records
from semel_broker.rpc import count_records
from semel_common.error_codes import ErrorCode
from semel_common.errors import InvalidRequestError
from semel_common.record_batches.batches import checksum
from semel_common.wire.methods import COUNT_RECORDS
from semel_runtime.journal.contract import StoredBatch
from semel_runtime.journal.journal_errors import JournalError
from semel_runtime.testing.volume import MemoryVolume


async def count(broker: Broker, from_offset: int = 0) -> int:
    return (await broker.count_records(from_offset)).record_count


async def test_markers_and_aborted_records_do_not_count(broker: Broker) -> None:
    await broker.produce(plain(b"a", b"b"))
    await broker.produce(batch(b"dropped", b"too"))
    await broker.end(ABORT)
    await broker.produce(batch(b"kept", epoch=1))
    await broker.end(COMMIT, epoch=1)
    result = await broker.count_records()
    assert (result.record_count, result.next_offset, result.end_offset) == (3, 7, 7)
    everything = await broker.count_records(isolation=READ_UNCOMMITTED)
    assert everything.record_count == 5


async def test_the_time_is_that_of_the_first_record_that_counts(broker: Broker) -> None:
    assert (await broker.count_records()).first_timestamp_ms == 0
    for number, outcome in enumerate((ABORT, COMMIT, COMMIT)):
        times = [10 * number + 1, 10 * number + 2]
        await broker.produce(batch(b"a", b"b", epoch=number, timestamps_ms=times))
        await broker.end(outcome, epoch=number)
    found = [(await broker.count_records(at)).first_timestamp_ms for at in range(10)]
    assert found == [12, 12, 12, 12, 12, 22, 22, 22, 0, 0]


async def test_an_open_transaction_does_not_count_yet(broker: Broker) -> None:
    await broker.produce(plain(b"a"))
    await broker.produce(batch(b"open", producer_id=OTHER))
    await broker.produce(plain(b"behind"))
    result = await broker.count_records()
    assert (result.record_count, result.end_offset) == (1, 1)
    everything = await broker.count_records(isolation=READ_UNCOMMITTED)
    assert (everything.record_count, everything.end_offset) == (3, 3)


async def test_counting_begins_within_a_batch_and_ends_with_the_log(broker: Broker) -> None:
    await broker.produce(plain(b"a", b"b", b"c"))
    assert [await count(broker, at) for at in range(5)] == [3, 2, 1, 0, 0]


async def test_a_call_looks_at_a_bounded_number_of_batches(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count_records, "_BATCHES_PER_CALL", 2)
    for _ in range(5):
        await broker.produce(plain(b"a", b"b"))
    counted, at, calls = 0, 0, 0
    while at < 10:
        result = await broker.count_records(at)
        assert result.end_offset == 10
        counted, at, calls = counted + result.record_count, result.next_offset, calls + 1
    assert (counted, calls) == (10, 3)


async def test_an_unknown_partition_is_refused_alone(broker: Broker) -> None:
    await broker.produce(plain(b"a"))
    request = wire.CountRecordsRequest(
        partitions=[
            wire.CountRecordsPartition(topic="nobody's"),
            wire.CountRecordsPartition(topic="orders"),
        ]
    )
    unknown, known = (await broker.call(COUNT_RECORDS, request)).partitions
    assert code(unknown) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert known.record_count == 1


async def test_a_wrong_call_is_refused(broker: Broker) -> None:
    with pytest.raises(InvalidRequestError, match="from_offset is -1"):
        await broker.count_records(-1)
    negative = wire.CountRecordsPartition(topic="orders", partition=-1)
    with pytest.raises(InvalidRequestError, match=r"partition is -1: must be 0 to 2147483647$"):
        await broker.call(COUNT_RECORDS, wire.CountRecordsRequest(partitions=[negative]))
    with pytest.raises(InvalidRequestError, match="partitions has 0"):
        await broker.call(COUNT_RECORDS, wire.CountRecordsRequest())


async def test_a_log_that_cannot_be_read_is_said_to_be_so(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await broker.produce(plain(b"a"))

    async def fail(*_: object, **__: object) -> None:
        raise JournalError("damaged")

    monkeypatch.setattr(broker.app._environment.journal.batches, "read_headers", fail)
    assert code(await broker.count_records()) == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize(("offset", "count"), [(10, 2), (11, 1), (13, 1), (14, 0)])
def test_what_compaction_has_left_of_a_batch_is_counted_by_its_payload(
    offset: int, count: int
) -> None:
    records = Records(values=[b"a", b"b"], timestamp_deltas_ms=[0, 0], offset_deltas=[0, 3])
    stored = StoredBatch(
        partition=1,
        base_offset=10,
        record_count=5,
        max_timestamp_ms=0,
        header=RecordBatch(record_count=5).SerializeToString(),
        payload=records.SerializeToString(),
    )
    assert count_records._records_from(stored, offset) == count


async def test_a_batch_that_cannot_be_opened_counts_as_a_whole(volume: MemoryVolume) -> None:
    """From before its topic was compacted. Else it would hide the lag of all who read there."""
    broken = keyed((b"k", b"1"), (b"k", b"2"))
    broken.payload = b"\xff"
    broken.crc32c = checksum(broken, broken.payload)
    cluster = coordinators(cleanup_policy="delete")
    async with serving(volume, coordinators=cluster) as broker:
        await broker.produce(broken)
        cluster.controller.publish(table({}, version=2))
        await turns()
        await broker.produce(keyed((b"k", b"3")))
        assert [await count(broker, at) for at in range(4)] == [3, 2, 1, 0]


async def test_a_call_opens_few_payloads(
    volume: MemoryVolume, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count_records, "_BATCHES_PER_CALL", 2 * count_records._OPENED_COST)
    monkeypatch.setattr(count_records, "_OPENED_BYTES_PER_STEP", 1)
    async with serving(volume, coordinators=coordinators()) as broker:
        for _ in range(5):
            await broker.produce(keyed((b"k", b"v")))
        result = await broker.count_records()
    assert (result.record_count, result.next_offset, result.end_offset) == (2, 2, 5)


@pytest.mark.parametrize("isolation", [READ_COMMITTED, READ_UNCOMMITTED])
async def test_after_compaction_the_counted_records_are_the_read_ones(
    volume: MemoryVolume, isolation: wire.IsolationLevel.ValueType
) -> None:
    async with serving(volume, coordinators=coordinators()) as broker:
        await write_some(broker)
        end = (await broker.fetch(isolation=READ_UNCOMMITTED)).high_watermark
        for _ in range(2):
            for offset in range(end + 1):
                counted = await broker.count_records(offset, isolation=isolation)
                read = records_of(await broker.fetch(offset, isolation=isolation))
                assert counted.record_count == len([each for each in read if each[0] >= offset])
            await broker.compact()
