"""From a batch as it was fetched to its records as columns. It is done when the first is wanted."""

from collections.abc import Callable

from aiosemel._partition import Opened
from aiosemel.consumer_records import ColumnBatch
from aiosemel.errors import CorruptMessageError, MessageTooLargeError
from aiosemel.offsets import TopicPartition
from semel.common.v1.records_pb2 import RecordBatch
from semel_common.batches import check_crc, decode_opened, open_payload


def open_batch(*, check_crcs: bool) -> Callable[[TopicPartition, RecordBatch], Opened]:
    """Return what makes columns of a batch; it raises CorruptMessageError, MessageTooLargeError."""

    def opened(topic_partition: TopicPartition, batch: RecordBatch) -> Opened:
        try:
            payload = batch.payload
            if check_crcs:
                check_crc(batch, payload)
            plain = open_payload(batch, payload)
            columns = decode_opened(batch, plain)
        except (CorruptMessageError, MessageTooLargeError) as error:
            raise type(error)(
                f"{topic_partition}, offset {batch.base_offset}: {error.message}",
                topic=topic_partition.topic,
                partition=topic_partition.partition,
                offset=batch.base_offset,
            ) from error
        records = ColumnBatch(
            topic_partition=topic_partition,
            offsets=columns.offsets(batch.base_offset),
            values=columns.values,
            keys=columns.keys,
            timestamps_ms=columns.timestamps_ms,
            headers=columns.headers,
        )
        return Opened(records, len(plain))

    return opened
