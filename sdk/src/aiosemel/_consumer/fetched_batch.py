"""From a batch as it was fetched to its records as columns. It is done when the first is wanted."""

import logging
from collections.abc import Callable

from aiosemel._consumer.partition_state import Opened
from aiosemel.errors import CorruptMessageError, MessageTooLargeError
from aiosemel.options.consumer_options import ConsumerOptions
from aiosemel.types.batch_place import BatchPlace
from aiosemel.types.consumer_records import ColumnBatch
from aiosemel.types.offsets import TopicPartition
from semel.common.v1.records_pb2 import RecordBatch
from semel_common.record_batches.batches import check_crc, decode_opened, open_payload

_log = logging.getLogger(__name__)


def open_batch(options: ConsumerOptions) -> Callable[[TopicPartition, RecordBatch], Opened]:
    """Return what makes columns of a batch; it raises CorruptMessageError, MessageTooLargeError.

    A batch that cannot be opened, and that the options name, has no records instead.
    """
    skipped = frozenset(map(BatchPlace.named, options.skip_batches))

    def opened(topic_partition: TopicPartition, batch: RecordBatch) -> Opened:
        try:
            return _opened(topic_partition, batch, options)
        except (CorruptMessageError, MessageTooLargeError) as error:
            place = BatchPlace(*topic_partition, batch.base_offset)
            if place not in skipped:
                raise _named(error, place, batch) from error
            _log.warning("batch %s skipped, as skip_batches says: %s", place, error.message)
            return _nothing(topic_partition)

    return opened


def _opened(
    topic_partition: TopicPartition, batch: RecordBatch, options: ConsumerOptions
) -> Opened:
    payload = batch.payload
    if options.check_crcs:
        check_crc(batch, payload)
    plain = open_payload(batch, payload, payload_max_bytes=options.opened_batch_max_bytes)
    columns = decode_opened(batch, plain)
    records = ColumnBatch(
        topic_partition=topic_partition,
        offsets=columns.offsets(batch.base_offset),
        values=columns.values,
        keys=columns.keys,
        timestamps_ms=columns.timestamps_ms,
        headers=columns.headers,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        is_transactional=batch.transactional,
    )
    return Opened(records, len(plain))


def _nothing(topic_partition: TopicPartition) -> Opened:
    records = ColumnBatch(
        topic_partition=topic_partition,
        offsets=(),
        values=(),
        keys=None,
        timestamps_ms=(),
        headers={},
    )
    return Opened(records, 0)


def _named(
    error: CorruptMessageError | MessageTooLargeError, place: BatchPlace, batch: RecordBatch
) -> CorruptMessageError | MessageTooLargeError:
    """Return an error that says which batch it is, and how to go on."""
    end = batch.base_offset + batch.record_count
    return type(error)(
        f"{place.topic}-{place.partition}, offset {place.offset}: {error.message}; to go on without"
        f" this batch, seek to offset {end}, or name {place} in skip_batches",
        topic=place.topic,
        partition=place.partition,
        offset=place.offset,
        next_offset=end,
    )
