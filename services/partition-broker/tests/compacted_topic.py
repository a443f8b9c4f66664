"""A compacted topic, with its writes and reads."""

from collections.abc import Mapping

from broker_harness import BROKER_ID, PRODUCER, image, topic
from broker_service import (
    ABORT,
    COMMIT,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Broker,
    Coordinators,
)
from msgspec.structs import replace

from semel.broker.v1 import broker_pb2 as wire
from semel.common.v1.records_pb2 import Codec, RecordBatch
from semel_common.record_batches.batches import Columns, decode_records, seal
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.testing.controller import ScriptedController
from semel_runtime.testing.network import MemoryNetwork

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
    """Return the newest value of each key for a reader from an offset on."""
    read: list[tuple[int, bytes | None, bytes | None]] = []
    result = await broker.fetch(offset, isolation=isolation)
    while result.next_offset > offset:
        read += [record for record in records_of(result) if record[0] >= offset]
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


async def left(broker: Broker) -> list[bytes | None]:
    return [value for _, _, value in records_of(await broker.fetch())]
