"""Batches that open to much more than they weigh."""

import time

from hostile.attack import Attack, Sent
from hostile.callers import Caller
from hostile.lines import UnaryLine, unary_line
from hostile.stage import TOPIC, Stage
from hostile.wire import length_delimited
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1.records_pb2 import Codec, RecordBatch, Records
from semel_common.record_batches.batches import checksum
from semel_common.record_batches.compression import compress
from semel_common.wire.methods import COUNT_RECORDS, FETCH, LIST_OFFSETS, PRODUCE
from semel_local.layout import Role

HEADERS = 7_000_000
PARTITION = 1
BATCHES = 20
_RECORDS_HEADERS, _HEADERS_PAIRS = 7, 2


def bomb() -> RecordBatch:
    """Return a batch of about 1.4 KB: one record with seven million empty headers."""
    now_ms = int(time.time() * 1000)
    pairs = length_delimited(_HEADERS_PAIRS, b"") * HEADERS
    opened = Records(values=[b"v"], base_timestamp_ms=now_ms).SerializeToString()
    payload = compress(opened + length_delimited(_RECORDS_HEADERS, pairs), Codec.CODEC_ZSTD)
    batch = RecordBatch(record_count=1, codec=Codec.CODEC_ZSTD, max_timestamp_ms=now_ms)
    batch.crc32c = checksum(batch, payload)
    batch.payload = payload
    return batch


async def _bombs(stage: Stage, sent: Sent) -> None:
    """Store bombs, where the broker takes them, and have them opened by every call that opens."""
    async with unary_line(stage, stage.target(Role.BROKER).address, Caller.WRITER) as line:
        for _ in range(BATCHES):
            partition = broker.ProducePartition(topic=TOPIC, partition=PARTITION, batches=[bomb()])
            await _ask(line, PRODUCE.path, broker.ProduceRequest(partitions=[partition]), sent)
        place = {"topic": TOPIC, "partition": PARTITION}
        fetch = broker.FetchRequest(
            isolation_level=1,  # type: ignore[arg-type]  # read uncommitted
            min_bytes=1,
            plain_records=True,
            partitions=[broker.FetchPartition(topic=TOPIC, partition=PARTITION)],
        )
        await _ask(line, FETCH.path, fetch, sent)
        count = broker.CountRecordsRequest(partitions=[broker.CountRecordsPartition(**place)])  # type: ignore[arg-type]  # names fit
        await _ask(line, COUNT_RECORDS.path, count, sent)
        search = broker.ListOffsetsPartition(topic=TOPIC, partition=PARTITION, timestamp_ms=1)
        await _ask(line, LIST_OFFSETS.path, broker.ListOffsetsRequest(partitions=[search]), sent)


async def _ask(
    line: UnaryLine,
    path: str,
    request: broker.ProduceRequest
    | broker.FetchRequest
    | broker.CountRecordsRequest
    | broker.ListOffsetsRequest,
    sent: Sent,
) -> None:
    data = request.SerializeToString()
    sent.add(await line.call(path, data), len(data))


ATTACKS = (
    Attack(
        name="header-bombs",
        what="A writer stores small batches that open to seven million headers, and reads them.",
        rpc="Produce, Fetch, CountRecords, ListOffsets",
        transport="unary",
        caller=Caller.WRITER,
        run=_bombs,
    ),
)
