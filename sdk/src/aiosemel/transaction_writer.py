"""What everything has in common that writes to a transaction: records in, and a group's offsets."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from aiosemel._producer.columns import RowColumns
from aiosemel._producer.conditional import ConditionalAppend
from aiosemel._producer.deliveries import ColumnsDelivery, ColumnsMetadata, Delivery, RecordMetadata
from aiosemel._producer.sizes import Headers
from aiosemel._producer.transactions import Transactions
from aiosemel.offsets import ConsumerGroupMetadata, OffsetAndMetadata, PartitionKey


class TransactionWriter(ABC):
    """Takes what belongs to a transaction. The base of who begins one, joins one, or is one."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    @abstractmethod
    def _check_writing(self) -> None:
        """Raise if nothing may be written here, now."""

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
        """Take a record of the transaction, and send it soon; as ``Producer.send``.

        The transaction's end waits for it: there is no need to await what is returned. Also raises
        TransactionAbortableError when an earlier send has failed, and IllegalStateError.
        """
        self._check_writing()
        return await self._transactions.send(topic, value, key, partition, headers, timestamp_ms)

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
        """Send a record and wait until it is stored, which does not yet make it visible."""
        self._check_writing()
        return await (
            await self._transactions.send(topic, value, key, partition, headers, timestamp_ms)
        )

    async def send_columns(
        self,
        topic: str,
        values: Sequence[bytes | None],
        *,
        keys: Sequence[bytes | None] | None = None,
        partition: int | None = None,
        headers: Sequence[Headers] | None = None,
        timestamp_ms: int | None = None,
        timestamps_ms: Sequence[int] | None = None,
    ) -> ColumnsDelivery:
        """Take many records at once; as ``Producer.send_columns``.

        A commit commits those that a call at fault, or a cancelled one, had taken before.
        """
        self._check_writing()
        columns = RowColumns.checked(
            values,
            keys=keys,
            headers=headers,
            timestamp_ms=timestamp_ms,
            timestamps_ms=timestamps_ms,
        )
        return await self._transactions.send_columns(topic, columns, partition)

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
        """Append records at one offset of a partition, or not at all; as ``Producer.append``.

        After BaseOffsetMismatchError, as after any refused send, the transaction can only be
        aborted. The marker of a transaction takes an offset as well, behind its records.
        """
        self._check_writing()
        append = ConditionalAppend.checked(
            values,
            partition=partition,
            expected_base_offset=expected_base_offset,
            keys=keys,
            headers=headers,
            timestamps_ms=timestamps_ms,
        )
        return await self._transactions.append(topic, append)

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
        self._check_writing()
        await self._transactions.send_offsets(offsets, group)
