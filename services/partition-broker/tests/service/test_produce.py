"""Produce: the checks at the edge, the stored batches, and the answers."""

import asyncio
from collections.abc import Callable

import pytest
from broker_harness import PRODUCER
from broker_service import COMMIT, READ_UNCOMMITTED, Broker, batch, code, plain, serving, turns

from semel.broker.v1 import broker_pb2 as wire
from semel.common.v1.records_pb2 import Header, Record, RecordBatch
from semel_common.error_codes import ErrorCode
from semel_common.errors import InvalidRequestError, ThrottlingQuotaExceededError
from semel_common.record_batches.batches import checksum, decode_records
from semel_common.wire.methods import PRODUCE
from semel_runtime.testing.volume import MemoryVolume


async def test_batches_come_back_as_they_were_sent(broker: Broker) -> None:
    sent = [batch(b"one", b"two", sequence=0), batch(b"three", sequence=2)]
    result = await broker.produce(*sent)
    assert (result.topic_id, result.partition, result.base_offset) == ("id-orders", 0, 0)
    fetched = await broker.fetch(isolation=READ_UNCOMMITTED)
    sent[1].base_offset = 2
    assert list(fetched.batches) == sent


async def test_a_repeat_is_answered_with_the_first_offset_and_stored_once(broker: Broker) -> None:
    await broker.produce(plain(b"before"))
    first = await broker.produce(batch(b"one"))
    assert await broker.produce(batch(b"one")) == first
    assert first.base_offset == 1
    assert (await broker.fetch(isolation=READ_UNCOMMITTED)).high_watermark == 2


async def test_nothing_is_answered_before_it_is_durable(
    broker: Broker, volume: MemoryVolume
) -> None:
    volume.hold()
    first = asyncio.create_task(broker.produce(batch(b"one")))
    await turns()
    repeat = asyncio.create_task(broker.produce(batch(b"one")))
    await turns()
    assert not first.done()
    assert not repeat.done()
    volume.release()
    assert (await first).base_offset == (await repeat).base_offset == 0


def _changed(change: Callable[[RecordBatch], None], *, sealed: bool = True) -> RecordBatch:
    changed = batch(b"one")
    change(changed)
    if sealed:
        changed.crc32c = checksum(changed, changed.payload)
    return changed


def _set(**fields: int) -> RecordBatch:
    def change(changed: RecordBatch) -> None:
        for name, value in fields.items():
            setattr(changed, name, value)

    return _changed(change)


def _flip_payload(changed: RecordBatch) -> None:
    changed.payload = changed.payload[:-1] + bytes([changed.payload[-1] ^ 1])


@pytest.mark.parametrize(
    ("bad", "refusal"),
    [
        pytest.param(
            _changed(_flip_payload, sealed=False), ErrorCode.CORRUPT_MESSAGE, id="bad CRC"
        ),
        pytest.param(_set(record_count=0), ErrorCode.INVALID_RECORD, id="no records"),
        pytest.param(_set(record_count=-1), ErrorCode.INVALID_RECORD, id="negative count"),
        pytest.param(_set(record_count=2_000_000), ErrorCode.INVALID_RECORD, id="too many"),
        pytest.param(_set(control=True), ErrorCode.INVALID_RECORD, id="a marker"),
        pytest.param(_set(producer_id=-1), ErrorCode.INVALID_RECORD, id="negative producer"),
        pytest.param(_set(producer_id=0), ErrorCode.INVALID_RECORD, id="transactional, no id"),
        pytest.param(_set(producer_epoch=-1), ErrorCode.INVALID_RECORD, id="negative epoch"),
        pytest.param(_set(producer_epoch=2**63 - 1), ErrorCode.INVALID_RECORD, id="last epoch"),
        pytest.param(_set(base_sequence=-1), ErrorCode.INVALID_RECORD, id="negative sequence"),
        pytest.param(_set(max_timestamp_ms=-1), ErrorCode.INVALID_RECORD, id="negative time"),
        pytest.param(_changed(lambda b: setattr(b, "codec", 900), sealed=False),
            ErrorCode.INVALID_RECORD, id="unknown codec"),
        pytest.param(
            batch(bytes(1_048_600), sequence=1), ErrorCode.MESSAGE_TOO_LARGE, id="too large"
        ),
        pytest.param(
            _set(producer_id=60 << 48 | 1), ErrorCode.INVALID_PRODUCER_ID_MAPPING, id="no owner"
        ),
    ],
)  # fmt: skip
async def test_a_bad_batch_is_refused_and_nothing_is_stored(
    broker: Broker, bad: RecordBatch, refusal: ErrorCode
) -> None:
    assert code(await broker.produce(batch(b"good"), bad)) == refusal
    assert (await broker.fetch()).high_watermark == 0


async def test_a_partition_without_batches_is_refused(broker: Broker) -> None:
    assert code(await broker.produce()) == ErrorCode.INVALID_RECORD


async def test_partitions_of_one_request_are_taken_or_refused_for_themselves(
    broker: Broker,
) -> None:
    request = wire.ProduceRequest(
        partitions=[
            wire.ProducePartition(topic="orders", partition=0, batches=[batch(b"one")]),
            wire.ProducePartition(topic="orders", partition=1, batches=[batch(b"x", sequence=7)]),
            wire.ProducePartition(topic="orders", partition=2, batches=[batch(b"one")]),
            wire.ProducePartition(topic="gone", partition=0, batches=[batch(b"one")]),
            wire.ProducePartition(topic="orders", partition=-1, batches=[batch(b"one")]),
            wire.ProducePartition(partition=0, batches=[batch(b"one")]),
            wire.ProducePartition(topic_id="id-orders", partition=0, batches=[batch(b"one")]),
            wire.ProducePartition(topic="x" * 250, partition=0, batches=[batch(b"one")]),
        ]
    )
    results = (await broker.call(PRODUCE, request)).partitions
    assert [code(result) for result in results] == [
        None,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]
    assert [result.partition for result in results] == [0, 1, 2, 0, -1, 0, 0, 0]


async def test_a_request_without_partitions_is_refused(broker: Broker) -> None:
    with pytest.raises(InvalidRequestError, match="partitions has 0 entries"):
        await broker.call(PRODUCE, wire.ProduceRequest())


@pytest.mark.parametrize(
    ("partition", "complaint"),
    [
        pytest.param(
            wire.ProducePartition(topic="orders", batches=[RecordBatch()] * 1_001),
            "number of batches is 1001",
            id="batches",
        ),
        pytest.param(
            wire.ProducePartition(
                topic="orders", records=wire.PlainRecords(records=[Record()] * 10_001)
            ),
            "number of plain records is 10001",
            id="plain records",
        ),
    ],
)
async def test_a_request_with_too_much_in_it_is_refused(
    broker: Broker, partition: wire.ProducePartition, complaint: str
) -> None:
    with pytest.raises(InvalidRequestError, match=complaint):
        await broker.produce_as(partition)


async def test_a_transactional_id_that_is_too_long_is_refused(broker: Broker) -> None:
    partition = wire.ProducePartition(topic="orders", batches=[batch(b"one")])
    request = wire.ProduceRequest(transactional_id="x" * 256, partitions=[partition])
    with pytest.raises(InvalidRequestError, match="transactional_id"):
        await broker.call(PRODUCE, request)


async def test_a_nearly_full_disk_refuses_records_but_takes_markers(volume: MemoryVolume) -> None:
    async with serving(volume) as broker:
        await broker.produce(batch(b"one"))
        volume.free_bytes = 0
        with pytest.raises(ThrottlingQuotaExceededError):
            await broker.produce(batch(b"two", sequence=1))
        assert (await broker.produce(batch(b"one"))).base_offset == 0
        await broker.end(COMMIT)
        assert (await broker.fetch()).last_stable_offset == 2


# -- plain records -------------------------------------------------------------------------------


async def test_plain_records_become_a_batch_with_the_time_of_arrival(broker: Broker) -> None:
    records = wire.PlainRecords(
        records=[
            Record(key=b"k", value=b"v", headers=[Header(key="h", value=b"x"), Header(key="n")]),
            Record(timestamp_ms=5),
        ]
    )
    result = await broker.produce_as(wire.ProducePartition(topic="orders", records=records))
    assert (code(result), result.base_offset) == (None, 0)
    (stored,) = (await broker.fetch()).batches
    columns = decode_records(stored)
    assert list(columns.keys or ()) == [b"k", None]
    assert list(columns.values) == [b"v", None]
    assert list(columns.timestamps_ms) == [broker.clock.now_ms(), 5]
    assert columns.headers == {0: (("h", b"x"), ("n", None))}
    assert stored.max_timestamp_ms == broker.clock.now_ms()


async def test_plain_records_of_a_producer_are_stored_once(broker: Broker) -> None:
    records = wire.PlainRecords(
        records=[Record(value=b"v")], producer_id=PRODUCER, transactional=True
    )
    partition = wire.ProducePartition(topic="orders", records=records)
    assert await broker.produce_as(partition) == await broker.produce_as(partition)
    assert (await broker.fetch()).high_watermark == 1


@pytest.mark.parametrize(
    ("records", "refusal"),
    [
        pytest.param(wire.PlainRecords(), ErrorCode.INVALID_RECORD, id="none"),
        pytest.param(
            wire.PlainRecords(records=[Record(timestamp_ms=-1)]),
            ErrorCode.INVALID_RECORD,
            id="negative time",
        ),
        pytest.param(
            wire.PlainRecords(records=[Record()], producer_id=PRODUCER, base_sequence=-4),
            ErrorCode.INVALID_RECORD,
            id="negative sequence",
        ),
        pytest.param(
            wire.PlainRecords(records=[Record(value=bytes(1_048_600))]),
            ErrorCode.MESSAGE_TOO_LARGE,
            id="too large",
        ),
    ],
)
async def test_bad_plain_records_are_refused(
    broker: Broker, records: wire.PlainRecords, refusal: ErrorCode
) -> None:
    partition = wire.ProducePartition(topic="orders", records=records)
    assert code(await broker.produce_as(partition)) == refusal
    assert (await broker.fetch()).high_watermark == 0


async def test_batches_and_plain_records_together_are_refused(broker: Broker) -> None:
    partition = wire.ProducePartition(
        topic="orders", batches=[batch(b"one")], records=wire.PlainRecords(records=[Record()])
    )
    assert code(await broker.produce_as(partition)) == ErrorCode.INVALID_REQUEST


# -- conditions -----------------------------------------------------------------------------------


def _at(expected: int, *batches: RecordBatch) -> wire.ProducePartition:
    return wire.ProducePartition(topic="orders", batches=batches, expected_base_offset=expected)


async def test_a_condition_that_fails_names_the_end_and_stores_nothing(broker: Broker) -> None:
    assert (await broker.produce_as(_at(0, batch(b"one")))).base_offset == 0
    refused = await broker.produce_as(_at(0, batch(b"two", sequence=1)))
    assert code(refused) is ErrorCode.BASE_OFFSET_MISMATCH
    assert refused.error.metadata["log_end_offset"] == "1"
    assert refused.base_offset == -1
    assert (await broker.produce_as(_at(0, batch(b"one")))).base_offset == 0
    fetched = await broker.fetch(isolation=READ_UNCOMMITTED)
    assert fetched.high_watermark == 1


async def test_a_negative_offset_is_no_condition(broker: Broker) -> None:
    refused = await broker.produce_as(_at(-1, batch(b"one")))
    assert code(refused) is ErrorCode.INVALID_REQUEST
    assert "expected_base_offset is -1" in refused.error.message
