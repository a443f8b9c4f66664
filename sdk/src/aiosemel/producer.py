"""The producer without transactions: records in, each stored exactly once."""

from collections.abc import Sequence
from typing import Self

from aiosemel._context import Context
from aiosemel._producer.columns import checked
from aiosemel._producer.conditional import ConditionalAppend
from aiosemel._producer.deliveries import ColumnsDelivery, ColumnsMetadata, Delivery, RecordMetadata
from aiosemel._producer.idempotence import Idempotence
from aiosemel._producer.sizes import Headers
from aiosemel.encoded_column import EncodedColumn
from aiosemel.errors import ClosedError
from aiosemel.options import ProducerOptions


class Producer:
    """Sends records, each of them stored exactly once. Made by ``SemelClient.producer``.

    Records of one partition are stored in the order in which they were sent, unless one of them is
    given up. Safe to share between tasks of one event loop.
    """

    def __init__(self, context: Context, options: ProducerOptions) -> None:
        self._context = context
        self._owner = Idempotence(context, options)
        self._pipeline = self._owner.pipeline
        self._closed = False

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Take a record, and send it soon; await what is returned to know where it is stored.

        Waits only for room in the buffer, and at first for the topic's metadata, up to
        ``max_block_ms``. The partition is the one given, else that of the key, else any.
        ``timestamp_ms`` are milliseconds since 1970-01-01 UTC; None: now.

        Raises TypeError for what is not bytes, RequestTimedOutError, InvalidTopicError,
        UnknownTopicOrPartitionError, MessageTooLargeError, and ApplicationRecoverableError when
        this producer is done. A call that is cancelled has sent nothing.
        """
        self._check()
        pairs = tuple(headers) if headers else ()
        sent = self._pipeline.try_send(topic, value, key, partition, pairs, timestamp_ms)
        if sent is None:
            sent = await self._pipeline.send(
                topic, value, key, partition, pairs, timestamp_ms, self._check
            )
        return sent

    async def send_and_wait(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Send a record, and wait until it is stored, up to ``delivery_timeout_ms``.

        Raises as ``send``, and the error that ended the record: after RequestTimedOutError it may
        be stored all the same, and so may it when the call was cancelled.
        """
        return await (
            await self.send(
                topic,
                value,
                key=key,
                partition=partition,
                headers=headers,
                timestamp_ms=timestamp_ms,
            )
        )

    async def send_columns(
        self,
        topic: str,
        values: Sequence[bytes | None] | EncodedColumn,
        *,
        keys: Sequence[bytes | None] | EncodedColumn | None = None,
        partition: int | None = None,
        headers: Sequence[Headers] | None = None,
        timestamp_ms: int | None = None,
        timestamps_ms: Sequence[int] | None = None,
    ) -> ColumnsDelivery:
        """Take many records at once: much cheaper for each than ``send``, with the same meaning.

        But for the order: in one partition, those without a key may come before or after others.
        ``keys``, ``headers`` and ``timestamps_ms``, if given, have one for each value; a
        ``timestamp_ms`` is that of all. An EncodedColumn costs less still: then the keys, if given,
        are one as well, and there are no headers. Raises as ``send``, and InvalidRequestError for
        columns that do not fit one another. Records before the one at fault may be on their way
        then, and those that found room before the call was cancelled.
        """
        self._check()
        columns = checked(
            values,
            keys=keys,
            headers=headers,
            timestamp_ms=timestamp_ms,
            timestamps_ms=timestamps_ms,
        )
        return await self._pipeline.send_columns(topic, columns, partition, self._check)

    async def append(
        self,
        topic: str,
        values: Sequence[bytes | None],
        *,
        partition: int,
        expected_base_offset: int,
        keys: Sequence[bytes | None] | None = None,
        headers: Sequence[Headers] | None = None,
        timestamps_ms: Sequence[int] | None = None,
    ) -> ColumnsMetadata:
        """Append records at one offset of a partition, or not at all; wait until they are stored.

        For locks and event stores: who has read a partition up to ``expected_base_offset``, such as
        a consumer's position at its end, writes there, and knows that nobody else has meanwhile.
        All records are one batch. Markers take offsets too, and so do this producer's own records
        that are on their way. ``keys``, ``headers`` and ``timestamps_ms``, if given, have
        one for each value.

        Raises BaseOffsetMismatchError if the log ends elsewhere: read on up to its
        ``log_end_offset``, decide again, and append there. Nothing was stored then.
        Raises MessageTooLargeError for more than fits into one request, RequestTimedOutError if the
        records may be stored or not: whoever reads on finds out, also when the call was cancelled.
        Also raises as ``send``, and InvalidRequestError for columns of different lengths.
        """
        self._check()
        append = ConditionalAppend.checked(
            values,
            partition=partition,
            expected_base_offset=expected_base_offset,
            keys=keys,
            headers=headers,
            timestamps_ms=timestamps_ms,
        )
        return await self._pipeline.append(topic, append, self._check)

    async def flush(self) -> None:
        """Wait until all that was sent so far is stored, or given up: its deliveries say which."""
        self._check()
        await self._pipeline.flush(None)

    async def close(self) -> None:
        """Wait for what was sent, then stop. May be called twice.

        Cancelled, it gives up what is not stored yet.
        """
        self._closed = True
        try:
            await self._pipeline.flush(None)
        finally:
            await self._pipeline.close(_closed())
            self._context.forget(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _check(self) -> None:
        if self._closed:
            raise _closed()
        self._owner.check()


def _closed() -> ClosedError:
    return ClosedError("the producer is closed")
