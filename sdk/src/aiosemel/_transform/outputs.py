"""The outputs of a handler: sends within the transaction in which its inputs are consumed."""

from collections.abc import Sequence

from aiosemel._producer.batching.deliveries import (
    ColumnsDelivery,
    ColumnsMetadata,
    Delivery,
)
from aiosemel._producer.batching.record_sizes import Headers
from aiosemel._producer.sends import RecordSends
from aiosemel._producer.transactional_producer import TransactionalProducer
from aiosemel.errors import IllegalStateError
from aiosemel.types.encoded_column import EncodedColumn


class Outputs(RecordSends):
    """The open transaction, as a handler sees it.

    Its sends are those of ``TransactionalProducer``. Once the handler has returned, they raise
    IllegalStateError: a later record would belong to another transaction, or to none. ``transform``
    itself commits the offsets of the handler's records.
    """

    def __init__(self, producer: TransactionalProducer) -> None:
        self._producer = producer
        self._open = True
        self.count = 0
        """Number of records that were sent."""

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
        """Send a record as part of the transaction; the handler need not await the delivery."""
        self._check()
        delivery = await self._producer.send(
            topic,
            value,
            key=key,
            partition=partition,
            headers=headers,
            timestamp_ms=timestamp_ms,
        )
        self.count += 1
        return delivery

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
        """Send many records at once; as ``Producer.send_columns``."""
        self._check()
        delivery = await self._producer.send_columns(
            topic,
            values,
            keys=keys,
            partition=partition,
            headers=headers,
            timestamp_ms=timestamp_ms,
            timestamps_ms=timestamps_ms,
        )
        self.count += len(values)
        return delivery

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
        """Append records at one offset of a partition, or not at all; as ``Producer.append``."""
        self._check()
        stored = await self._producer.append(
            topic,
            values,
            partition=partition,
            expected_base_offset=expected_base_offset,
            keys=keys,
            headers=headers,
            timestamps_ms=timestamps_ms,
        )
        self.count += len(values)
        return stored

    def close(self) -> None:
        """Take no more."""
        self._open = False

    def _check(self) -> None:
        if not self._open:
            raise IllegalStateError("the transaction of these records is over: send in the handler")
