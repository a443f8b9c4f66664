"""The calls that send records: the same ones for every object that sends.

A producer, a transaction's block, a writer of a joint transaction and the outputs of a handler
differ only in when they may send.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from aiosemel._producer.batching.columns import checked
from aiosemel._producer.batching.conditional_append import ConditionalAppend
from aiosemel._producer.batching.deliveries import (
    ColumnsDelivery,
    ColumnsMetadata,
    Delivery,
    RecordMetadata,
)
from aiosemel._producer.batching.record_sizes import Headers, pairs_of
from aiosemel._producer.sending.pipeline import Check, Pipeline
from aiosemel._producer.transactions.transaction_driver import Transactions
from aiosemel._producer.transactions.transaction_states import Call
from aiosemel.types.encoded_column import EncodedColumn
from aiosemel.types.offsets import ConsumerGroupMetadata, OffsetAndMetadata, PartitionKey
from aiosemel.types.producer_record import ProducerRecord


class RecordSends(ABC):
    """Sends records one by one."""

    @abstractmethod
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
        """Take a record, and send it soon; await the returned delivery to know its offset."""

    async def send_all(self, records: Iterable[ProducerRecord]) -> None:
        """Take records one after the other, as ``send``; raises TypeError for another object."""
        for record in records:
            if not isinstance(record, ProducerRecord):
                raise TypeError(f"records must be ProducerRecord, not {type(record).__name__}")
            await self.send(
                record.topic,
                record.value,
                key=record.key,
                partition=record.partition,
                headers=record.headers,
                timestamp_ms=record.timestamp_ms,
            )

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

        In a transaction, a stored record is not yet visible. Raises as ``send``, and the error that
        ended the record. After RequestTimedOutError, and after a cancelled call, the record may be
        stored.
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


class Sends(RecordSends):
    """Sends records; a transaction can only be aborted after a send that has failed."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    @abstractmethod
    def _check_send(self) -> None:
        """Raise if no record may be sent now."""

    @abstractmethod
    def _check_after_wait(self) -> Check:
        """Return the check of a record that had to wait: its transaction may have ended."""

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
        """Take a record, and send it soon; await the returned delivery to know its offset.

        Waits only for room in the buffer, and at first for the topic's metadata, up to
        ``max_block_ms``. The partition is the one given, else that of the key, else any.
        ``timestamp_ms`` are milliseconds since 1970-01-01 UTC; None: now, which is one time for
        each turn of the event loop. In a transaction, the delivery need not be awaited: the end of
        the transaction waits for it.

        Raises TypeError for keys and values that are not bytes, RequestTimedOutError,
        InvalidTopicError, UnknownTopicOrPartitionError, MessageTooLargeError, and
        ApplicationRecoverableError when the producer is done. In a transaction also raises
        TransactionAbortableError when an earlier send has failed, and IllegalStateError when the
        transaction is not open. A cancelled call has sent nothing.
        """
        self._check_send()
        pairs = pairs_of(headers) if headers else ()
        sent = self._pipeline.try_send(topic, value, key, partition, pairs, timestamp_ms)
        if sent is None:
            check = self._check_after_wait()
            sent = await self._pipeline.send(
                topic, value, key, partition, pairs, timestamp_ms, check
            )
        return sent

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
        may be on their way then, and records that found room before a cancelled call ended; the
        commit of a transaction commits them too.
        """
        self._check_send()
        columns = checked(
            values,
            keys=keys,
            headers=headers,
            timestamp_ms=timestamp_ms,
            timestamps_ms=timestamps_ms,
        )
        check = self._check_after_wait()
        return await self._pipeline.send_columns(topic, columns, partition, check)

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
        that no other producer has written meanwhile. All records are one batch. Markers of
        transactions take offsets too, and so do this producer's own records that are on their way.
        ``keys``, ``headers`` and ``timestamps_ms``, if given, have one entry for each value.

        Raises BaseOffsetMismatchError if the log ends elsewhere; the broker has stored nothing
        then: read on up to its ``log_end_offset``, decide again, and append there, in a transaction
        after an abort. Raises MessageTooLargeError for more than one request can hold,
        RequestTimedOutError if it is unknown whether the records are stored: read on to find out,
        also after a cancelled call. Also raises as ``send``, and InvalidRequestError for columns of
        different lengths.
        """
        self._check_send()
        append = ConditionalAppend.checked(
            values,
            partition=partition,
            expected_base_offset=expected_base_offset,
            keys=keys,
            headers=headers,
            timestamps_ms=timestamps_ms,
        )
        return await self._pipeline.append(topic, append, self._check_after_wait())


class TransactionSends(Sends):
    """Sends within a transaction, where a group's offsets can be committed too."""

    def __init__(self, transactions: Transactions) -> None:
        super().__init__(transactions.pipeline)
        self._transactions = transactions
        self._manager = transactions.manager
        self._home = transactions.home

    @abstractmethod
    def _check_writer(self) -> None:
        """Raise if this object may not write, whatever state the transaction is in."""

    def _check_send(self) -> None:
        """Raise if no record may be sent now.

        Senders look first whether there is anything to raise, without a call: it runs for each
        record.
        """
        self._check_writer()
        if not self._manager.takes_records:
            self._manager.check(Call.SEND)

    def _check_after_wait(self) -> Check:
        return self._transactions.check_same_transaction()

    async def send_offsets(
        self,
        offsets: Mapping[PartitionKey, OffsetAndMetadata | int],
        group: ConsumerGroupMetadata,
    ) -> None:
        """Commit a group's offsets, of the next record to read, as part of the transaction.

        ``group`` is what ``consumer.group_metadata()`` says: a member that has lost its partitions
        meanwhile is refused, with UnknownMemberIdError, FencedMemberEpochError or
        StaleMemberEpochError. After any error of the group coordinator, and when it was cancelled,
        the transaction can only be aborted. Several calls go one after the other.
        """
        self._check_writer()
        await self._transactions.send_offsets(offsets, group)
