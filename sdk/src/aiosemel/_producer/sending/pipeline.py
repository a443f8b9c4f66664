"""From records to deliveries: what producers with and without transactions have in common.

Appending is synchronous, so that nothing comes between the check that a record may be sent and its
place in a batch. Only what must wait does: for metadata, for room, or for its turn.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence

from aiosemel._cluster.retry import Deadline
from aiosemel._producer.batching.accumulator import Accumulator
from aiosemel._producer.batching.batch import Batch
from aiosemel._producer.batching.batch_splitting import cut
from aiosemel._producer.batching.columns import EncodedRows, RowColumns, Rows
from aiosemel._producer.batching.conditional_append import ConditionalAppend
from aiosemel._producer.batching.deliveries import (
    ColumnsDelivery,
    ColumnsMetadata,
    Completions,
    Delivery,
    Piece,
)
from aiosemel._producer.batching.limits import Limits
from aiosemel._producer.batching.partitioning import Part, TopicPartitions, key_hash
from aiosemel._producer.batching.record_sizes import (
    RECORD_OVERHEAD_BYTES,
    Slice,
    check_timestamp,
    record_size,
)
from aiosemel._producer.batching.size_limits import check_request_size
from aiosemel._producer.sending.buffer_waits import Flushes, Room
from aiosemel._producer.sending.producer_spans import ProducerSpans, settled
from aiosemel._producer.sending.request_encoding import check_codec
from aiosemel._producer.sending.sender import Owner, Sender
from aiosemel._producer.sending.topic_cache import ALONE, Topics
from aiosemel._shared.context import Context
from aiosemel.errors import SemelError
from aiosemel.options.client_options import ProducerOptions
from semel_common.ids import TopicPartition
from semel_common.record_batches.batches import decode_parts
from semel_common.record_batches.headers import HeaderPairs

YIELD_BYTES = 65_536
"""A caller that never waits, and sends so much, lets others run: the sender, above all."""

Check = Callable[[], None]
"""Raises when records may not be sent any more."""


class Pipeline:
    """The way of the records of one producer."""

    def __init__(self, context: Context, options: ProducerOptions, owner: Owner) -> None:
        """Start nothing yet. Raises InvalidConfigError if the codec is not installed."""
        check_codec(options.compression)
        self._cluster = context.cluster
        self._now_ms = context.clock.now_ms
        self._random = context.random
        self._options = options
        limits = Limits(
            batch_size_bytes=options.batch_size_bytes,
            request_size_max_bytes=options.max_request_size_bytes,
            memory_bytes=options.buffer_memory_bytes,
            in_flight_max=options.max_in_flight,
            delivery_timeout_ms=options.delivery_timeout_ms,
        )
        self._accumulator = Accumulator(
            limits, transactional=owner.transactional_id is not None, cut=cut
        )
        self.spans = (
            None
            if context.tracer is None
            else ProducerSpans(context.tracer, owner.transactional_id)
        )
        self._topics = Topics(context, options, self._accumulator)
        self._sender = Sender(
            context,
            options,
            self._accumulator,
            self._topics,
            owner,
            self._settled,
            is_traced=self.spans is not None,
        )
        self._completions = Completions()
        self._room = Room(self._accumulator, context.cluster.trouble)
        self._flushes = Flushes(self._accumulator, context.cluster.trouble)
        self._unyielded_bytes = 0
        self._quick_bytes = 0
        """What single records may take before the next look at the room and at the event loop."""
        self._turn_ms = 0
        """The time of single records in this turn of the event loop; 0: not read yet."""

    # -- in -------------------------------------------------------------------------------------

    def try_send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        headers: HeaderPairs,
        timestamp_ms: int | None,
    ) -> Delivery | None:
        """Append a record if nothing has to be waited for; None if something has.

        Mostly there is an open batch in the record's partition: then nothing else is looked at.
        Raises TypeError, UnknownTopicOrPartitionError.
        """
        if timestamp_ms is not None:
            check_timestamp(timestamp_ms)
        if type(value) is bytes and key is None and not headers:
            size_bytes = RECORD_OVERHEAD_BYTES + len(value)
        elif type(value) is bytes and type(key) is bytes and not headers:
            size_bytes = RECORD_OVERHEAD_BYTES + len(value) + len(key)
        else:
            size_bytes = record_size(value, key, headers)
        partitions = self._topics.known.get(topic)
        if partitions is None or (size_bytes > self._quick_bytes and self._must_wait(size_bytes)):
            return None
        if partition is None:
            number = partitions.sticky_number if key is None else key_hash(key) % partitions.count
        elif type(partition) is int and 0 <= partition < partitions.count:
            number = partition
        else:
            return None
        batch = partitions.open_batches[number]
        if batch is None or batch.size_bytes + size_bytes > batch.full_bytes:
            if (
                self._topics.metadata is not self._cluster.cache.metadata
                or size_bytes > partitions.limit_bytes
            ):
                return None
            batch = self._open_batch(partitions, partition, key, size_bytes)
        if timestamp_ms is None:
            timestamp_ms = self._turn_ms or self._read_clock()
        delivery = Delivery()
        delivery.topic = topic
        delivery.batch = batch
        delivery.position = self._accumulator.append(
            batch, value, key, timestamp_ms, headers, size_bytes
        )
        delivery.completions = self._completions
        self._quick_bytes -= size_bytes
        return delivery

    def _read_clock(self) -> int:
        """Return the time, and keep it for this turn of the event loop.

        A caller that never waits has a turn of ``YIELD_BYTES`` at most.
        """
        self._turn_ms = self._now_ms()
        asyncio.get_running_loop().call_soon(self._forget_time)
        return self._turn_ms

    def _forget_time(self) -> None:
        self._turn_ms = 0

    def _must_wait(self, size_bytes: int) -> bool:
        """Look whether a record must wait for room, or for others; else allow some bytes at once.

        Only single records take of these bytes: the next wait for room takes the rest back.
        """
        if self._unyielded_bytes > YIELD_BYTES or not self._room.is_free(size_bytes):
            return True
        until_turn = YIELD_BYTES - self._unyielded_bytes
        self._quick_bytes = max(size_bytes, min(until_turn, self._room.free_bytes))
        self._unyielded_bytes += self._quick_bytes
        return False

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        headers: HeaderPairs,
        timestamp_ms: int | None,
        check: Check,
    ) -> Delivery:
        """Append a record, after waiting for whatever it takes, up to ``max_block_ms``.

        Raises as ``try_send``, MessageTooLargeError, and RequestTimedOutError.
        """
        deadline = Deadline.after_ms(self._options.max_block_ms)
        size_bytes = record_size(value, key, headers)
        check_request_size(topic, 1, size_bytes, self._options.max_request_size_bytes)
        partitions = await self._topics.partitions_of(topic, partition, deadline)
        if size_bytes > partitions.limit_bytes:
            alone = RowColumns.checked(
                [value],
                keys=None if key is None else [key],
                headers=[headers],
                timestamp_ms=None,
                timestamps_ms=None,
            )
            partitions = await self._topics.check_fits(partitions, alone, ALONE, deadline)
        await self._wait_for_room(size_bytes, deadline)
        check()
        batch = self._open_batch(partitions, partition, key, size_bytes)
        if timestamp_ms is None:
            timestamp_ms = self._turn_ms or self._read_clock()
        delivery = Delivery()
        delivery.topic = topic
        delivery.batch = batch
        delivery.position = self._accumulator.append(
            batch, value, key, timestamp_ms, headers, size_bytes
        )
        delivery.completions = self._completions
        self._unyielded_bytes += size_bytes
        return delivery

    async def send_columns(
        self,
        topic: str,
        columns: Rows,
        partition: int | None,
        check: Check,
    ) -> ColumnsDelivery:
        """Append many records; errors as ``send``: a row at fault is found before any is taken."""
        deadline = Deadline.after_ms(self._options.max_block_ms)
        partitions = await self._topics.partitions_of(topic, partition, deadline)
        parts = list(_parted(partitions, columns, partition))
        cuts = await self._topics.cut(partitions, parts, deadline)
        given_ms = columns.timestamp_ms
        timestamp_ms = self._now_ms() if given_ms is None else given_ms
        pieces: list[Piece] = []
        for (topic_partition, rows), slices in zip(parts, cuts, strict=True):
            for piece in slices:
                await self._wait_for_room(piece.size_bytes, deadline)
                check()
                target = topic_partition or partitions.move_on()
                pieces.append(self._append_slice(partitions, target, rows, piece, timestamp_ms))
        return ColumnsDelivery(topic, pieces, self._completions)

    def _append_slice(
        self,
        partitions: TopicPartitions,
        target: TopicPartition,
        rows: Rows,
        of: Slice,
        timestamp_ms: int,
    ) -> Piece:
        start, stop, size_bytes = of
        is_encoded = isinstance(rows, EncodedRows)
        batch = self._batch(partitions, target, size_bytes, encoded=is_encoded)
        position = batch.record_count
        if isinstance(rows, EncodedRows):
            self._accumulator.append_encoded(
                batch,
                records=rows.cut(start, stop),
                timestamps_ms=rows.times(start, stop, timestamp_ms),
                size_bytes=size_bytes,
            )
        else:
            self._accumulator.append_columns(
                batch,
                rows=rows.cut(start, stop),
                timestamp_ms=timestamp_ms,
                size_bytes=size_bytes,
            )
        self._unyielded_bytes += size_bytes
        return Piece(batch, position, stop - start)

    async def append(self, topic: str, append: ConditionalAppend, check: Check) -> ColumnsMetadata:
        """Append a batch at one offset, and wait until it is stored; errors as ``send``.

        Raises BaseOffsetMismatchError, and the other errors that end batches.
        """
        deadline = Deadline.after_ms(self._options.max_block_ms)
        partitions = await self._topics.partitions_of(topic, append.partition, deadline)
        await self._topics.check_append(partitions, append, deadline)
        await self._wait_for_room(append.size_bytes, deadline)
        check()
        batch = self._accumulator.append_at(
            partitions.numbered(append.partition),
            append,
            timestamp_ms=self._now_ms(),
            now_ms=_loop_ms(),
            limit_bytes=self._topics.batch_limit(partitions),
        )
        if self.spans is not None and not self.spans.is_dropped:
            self.spans.sending(topic, batch)
        self._sender.wake()
        whole = Piece(batch, 0, len(append.values))
        (stored,) = await ColumnsDelivery(topic, [whole], self._completions)
        return stored

    def _open_batch(
        self,
        partitions: TopicPartitions,
        partition: int | None,
        key: bytes | None,
        size_bytes: int,
    ) -> Batch:
        """Return the batch of a single record, and note it for the next one."""
        number = partitions.number_of(partition, key)
        if (
            partition is None
            and key is None
            and self._accumulator.open_batch(partitions.sticky, size_bytes) is None
        ):
            number = partitions.move_on().partition
        batch = self._batch(partitions, partitions.partitions[number], size_bytes)
        partitions.open_batches[number] = batch
        return batch

    def _batch(
        self,
        partitions: TopicPartitions,
        target: TopicPartition,
        size_bytes: int,
        *,
        encoded: bool = False,
    ) -> Batch:
        """Return the batch to append to.

        Once it has begun, the sender comes back to it by itself: when it is flushed, another one
        follows, or an answer makes way.
        """
        batch = self._accumulator.open_batch(target, size_bytes, encoded=encoded)
        if batch is None:
            limit_bytes = self._topics.batch_limit(partitions)
            batch = self._accumulator.begin_batch(target, _loop_ms(), limit_bytes)
            if self.spans is not None and not self.spans.is_dropped:
                self.spans.sending(partitions.name, batch)
            self._sender.wake()
        return batch

    async def _wait_for_room(self, size_bytes: int, deadline: Deadline) -> None:
        self._quick_bytes = 0
        if self._unyielded_bytes > YIELD_BYTES:
            self._unyielded_bytes = 0
            await asyncio.sleep(0)
        if not self._room.is_free(size_bytes):
            await self._room.wait(size_bytes, deadline)

    @property
    def used_bytes(self) -> int:
        """Size of all records that are not done."""
        return self._accumulator.used_bytes

    # -- out ------------------------------------------------------------------------------------

    async def flush(self, deadline: Deadline | None) -> None:
        """Wait until everything that is there is done; None: as long as ``delivery_timeout_ms``.

        Raises RequestTimedOutError. Returns early after ``interrupt``.
        """
        number = self._accumulator.flush()
        if not self._accumulator.is_flushed(number):
            self._sender.wake()
            await self._flushes.wait(number, deadline)

    def interrupt(self) -> None:
        """End all waits for a flush."""
        self._flushes.interrupt()

    def start_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """Send what comes from now on under another identity."""
        self._accumulator.start_epoch(producer_id, producer_epoch)

    @property
    def needs_producer_id(self) -> bool:
        """Whether nothing goes before the next ``start_epoch``."""
        return self._accumulator.needs_producer_id

    @property
    def is_answered(self) -> bool:
        """Whether no batch is on its way, so that ``start_epoch`` may change the producer id."""
        return self._accumulator.is_answered

    def has_unacknowledged(self, topic_partition: TopicPartition) -> bool:
        """Return whether something was sent to a partition, and is not done."""
        return self._accumulator.has_unacknowledged(topic_partition)

    def discard_queued(self, error: SemelError) -> None:
        """Give up the records that were not sent yet."""
        self._settle_all(self._accumulator.fail_queued(error))

    def discard_all(self, error: SemelError) -> None:
        """Give up everything, and wait for no answer."""
        self._sender.cancel_requests()
        self._settle_all(self._accumulator.fail_all(error))

    async def close(self, error: SemelError) -> None:
        """Stop sending; what is still there is given up."""
        try:
            await self._sender.close()
        finally:
            self.discard_all(error)
            if self.spans is not None:
                self.spans.end(None)

    def _settle_all(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            self._settled(batch)

    def _settled(self, batch: Batch) -> None:
        if batch.span is not None and not batch.parts:
            settled(batch)
        self._completions.done(batch)
        self._room.grant()
        self._flushes.check()


def _parted(partitions: TopicPartitions, columns: Rows, partition: int | None) -> Iterator[Part]:
    if partition is not None:
        yield Part(partitions.numbered(partition), columns)
    elif columns.keys is None or not len(columns.values):
        yield Part(None, columns)
    elif isinstance(columns, EncodedRows):
        yield from partitions.spread(_plain(columns))
    else:
        yield from partitions.spread(columns)


def _plain(rows: EncodedRows) -> RowColumns:
    """Return rows as lists: their keys are to be looked at one by one."""
    count = len(rows.values)
    columns = decode_parts([rows.cut(0, count)], [0] * count)
    return RowColumns.checked(
        columns.values,
        keys=columns.keys,
        headers=None,
        timestamp_ms=rows.timestamp_ms,
        timestamps_ms=rows.timestamps_ms,
    )


def _loop_ms() -> float:
    return asyncio.get_running_loop().time() * 1000
