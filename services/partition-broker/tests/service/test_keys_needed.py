"""Records without a key in a compacted topic."""

from collections.abc import AsyncIterator

import pytest
from broker_service import (
    Broker,
    code,
    plain,
    serving,
    turns,
)
from compacted_topic import (
    PLAIN,
    coordinators,
    keyed,
    records_of,
    table,
)

from semel.broker.v1 import broker_pb2 as wire
from semel.common.v1.records_pb2 import Codec, RecordBatch
from semel_common.error_codes import ErrorCode
from semel_common.record_batches.batches import Columns, checksum, seal
from semel_common.record_batches.payload_limits import OPENED_MAX_BYTES
from semel_runtime.testing.volume import MemoryVolume


@pytest.fixture
async def broker(volume: MemoryVolume) -> AsyncIterator[Broker]:
    """A broker with one compacted partition."""
    async with serving(volume, coordinators=coordinators()) as serving_broker:
        yield serving_broker


def keyless(*keys: bytes | None, codec: Codec.ValueType = Codec.CODEC_UNSPECIFIED) -> RecordBatch:
    columns = Columns(
        values=[b"value"] * len(keys), keys=keys, timestamps_ms=[1_000] * len(keys), headers={}
    )
    return seal(
        columns,
        producer_id=PLAIN,
        producer_epoch=0,
        base_sequence=0,
        transactional=False,
        codec=codec,
    )


@pytest.mark.parametrize(
    ("refused", "position"),
    [
        (plain(b"1"), 0),
        (keyless(b"a", None, b"c", None), 1),
        (keyless(b"a", b"", None, codec=Codec.CODEC_ZSTD), 2),
    ],
)
async def test_a_record_without_a_key_is_refused_with_all_of_its_batch(
    broker: Broker, refused: RecordBatch, position: int
) -> None:
    result = await broker.produce(keyed((b"a", b"1")), refused)

    assert code(result) == ErrorCode.INVALID_RECORD
    assert f"record {position} of a batch has no key" in result.error.message
    assert (await broker.fetch()).high_watermark == 0


async def test_what_cannot_be_opened_is_refused_too(broker: Broker) -> None:
    damaged = keyed((b"a", b"1"))
    damaged.payload = b"\xff\xff"
    damaged.crc32c = checksum(damaged, damaged.payload)
    large = keyed((b"a", bytes(OPENED_MAX_BYTES)), codec=Codec.CODEC_ZSTD)

    assert code(await broker.produce(damaged)) == ErrorCode.CORRUPT_MESSAGE
    assert code(await broker.produce(large)) == ErrorCode.MESSAGE_TOO_LARGE


async def test_what_is_too_large_is_not_even_opened(volume: MemoryVolume) -> None:
    options = coordinators(max_message_bytes="1024")
    async with serving(volume, coordinators=options) as broker:
        large = keyed((b"a", b"1"))
        large.payload = b"\xff" * 1_025
        large.crc32c = checksum(large, large.payload)
        assert code(await broker.produce(large)) == ErrorCode.MESSAGE_TOO_LARGE


async def test_an_empty_key_and_a_plain_record_with_a_key_are_taken(broker: Broker) -> None:
    request = wire.ProducePartition(topic="orders", partition=0)
    request.records.records.add(key=b"a", value=b"1")
    assert code(await broker.produce_as(request)) is None
    assert code(await broker.produce(keyed((b"", b"1")))) is None
    request.records.records.add(value=b"2")
    assert code(await broker.produce_as(request)) == ErrorCode.INVALID_RECORD


async def test_a_partition_that_is_not_here_is_refused_as_that(broker: Broker) -> None:
    request = wire.ProducePartition(topic_id="none", partition=0, batches=[plain(b"1")])
    assert code(await broker.produce_as(request)) == ErrorCode.UNKNOWN_TOPIC_ID


async def test_records_without_keys_from_before_go_with_the_first_pass(
    volume: MemoryVolume,
) -> None:
    options = coordinators(cleanup_policy="delete")
    async with serving(volume, coordinators=options) as broker:
        await broker.produce(plain(b"1"))
        await broker.produce(keyed((b"a", b"1")))
        options.controller.publish(table({}, version=2))
        await turns()
        await broker.compact()
        assert records_of(await broker.fetch()) == [(1, b"a", b"1")]
