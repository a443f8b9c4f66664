"""The producer without transactions: records in, each stored exactly once."""

from collections.abc import Sequence
from typing import Self

from aiosemel._cluster.retry import Deadline
from aiosemel._producer.batching.columns import checked
from aiosemel._producer.batching.conditional_append import ConditionalAppend
from aiosemel._producer.batching.deliveries import (
    ColumnsDelivery,
    ColumnsMetadata,
    Delivery,
    RecordMetadata,
)
from aiosemel._producer.batching.record_sizes import Headers
from aiosemel._producer.sending.idempotent_session import Idempotence
from aiosemel._shared.context import Context
from aiosemel.errors import ClosedError, RequestTimedOutError
from aiosemel.options.client_options import ProducerOptions
from aiosemel.types.encoded_column import EncodedColumn
from semel_common.library_log import get_logger

_log = get_logger(__name__)


class Producer:
    """Sends records, each of them stored exactly once. Made by ``SemelClient.producer``.

    Records of one partition are stored in the order in which they were sent, unless one of them is
    given up. Safe to share between tasks of one event loop.
    """

    def __init__(self, context: Context, options: ProducerOptions) -> None:
        self._context = context
        self._owner = Idempotence(context, options)
        self._pipeline = self._owner.pipeline
        self._close_timeout_ms = options.close_timeout_ms
        self._close_deadline: Deadline | None = None
        """None: as long as records may take."""
        self._home = context.cluster.home
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

        Raises TypeError for keys and values that are not bytes, RequestTimedOutError,
        InvalidTopicError, UnknownTopicOrPartitionError, MessageTooLargeError, and
        ApplicationRecoverableError when this producer is done. A cancelled call has sent nothing.
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

        Raises as ``send``, and the error that ended the record. After RequestTimedOutError, and
        after a cancelled call, the record may be stored.
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

        The order differs: in one partition, records without a key may come before or after others.
        ``keys``, ``headers`` and ``timestamps_ms``, if given, have one entry for each value; a
        ``timestamp_ms`` is for all values. An EncodedColumn costs less still: then the keys, if
        given, are one as well, and there are no headers. Raises as ``send``, and
        InvalidRequestError for columns that do not fit one another. Records before the one at fault
        may be on their way then, and records that found room before a cancelled call ended.
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

        For locks and event stores: a reader that has read a partition up to
        ``expected_base_offset``, such as a consumer's position at its end, writes there, and knows
        that no other producer has written meanwhile. All records are one batch. Markers take
        offsets too, and so do this producer's own records that are on their way. ``keys``,
        ``headers`` and ``timestamps_ms``, if given, have one entry for each value.

        Raises BaseOffsetMismatchError if the log ends elsewhere; the broker has stored nothing
        then: read on up to its ``log_end_offset``, decide again, and append there. Raises
        MessageTooLargeError for more than one request can hold, RequestTimedOutError if it is
        unknown whether the records are stored: read on to find out, also after a cancelled call.
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
        """Wait for all records that were sent, then stop. May be called twice.

        Cancelled, it gives up the records that are not stored yet. After an exception has left the
        block of the producer or of its client, it waits for ``close_timeout_ms`` at most.
        """
        self._home.check()
        self._closed = True
        try:
            await self._pipeline.flush(self._close_deadline)
        except RequestTimedOutError:
            _log.warning(
                "closed after %d ms: %d bytes of records are given up that were not acknowledged",
                self._close_timeout_ms,
                self._pipeline.used_bytes,
            )
        finally:
            await self._pipeline.close(_closed())
            self._context.forget(self)

    def hurry(self) -> None:
        """Let ``close`` wait for ``close_timeout_ms`` from now at most."""
        if self._close_deadline is None:
            self._close_deadline = Deadline.after_ms(self._close_timeout_ms)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        if exc_type is not None:
            self.hurry()
        await self.close()

    def _check(self) -> None:
        self._home.check()
        if self._closed:
            raise _closed()
        self._owner.check()


def _closed() -> ClosedError:
    return ClosedError("the producer is closed")
