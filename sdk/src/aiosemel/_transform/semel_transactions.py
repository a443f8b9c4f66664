"""Transactions that commit outputs and the group's offsets together, in the cluster.

A producer that has come to its end is replaced by a new one, whose ``init_transactions`` waits
until every earlier transaction of the id is settled; then the consumer goes on from the group's
committed offsets, which are the only witness of what became of the last transaction. A producer
that another instance has fenced is replaced only if ``take_over_when_fenced`` says so.
"""

import asyncio
from collections.abc import Mapping

from aiosemel._consumer.consumer import Consumer
from aiosemel._producer.transactional_producer import TransactionalProducer
from aiosemel._transform.failures import StopError
from aiosemel._transform.input_transactions import OpenTransaction, go_back
from aiosemel._transform.outputs import Outputs
from aiosemel._transform.pausing import Pausing
from aiosemel._transform.poison import Input
from aiosemel._transform.producer_supply import ProducerSupply
from aiosemel.errors import (
    ApplicationRecoverableError,
    InvalidRequestError,
    RetriableError,
    SemelError,
    TransactionOutcomeUnknownError,
)
from aiosemel.types.offsets import OffsetAndMetadata, TopicPartition
from semel_common.library_log import get_logger

_log = get_logger(__name__)


class SemelTransactions:
    """The transactions of one loop. Implements ``InputTransactions``."""

    def __init__(self, consumer: Consumer, producers: ProducerSupply, pausing: Pausing) -> None:
        self._consumer = consumer
        self._producers = producers
        self._pausing = pausing
        self.unknown = 0

    @property
    def producers(self) -> int:
        """How many producers there have been."""
        return self._producers.made

    async def start(self) -> None:
        """Make the first producer."""
        await self._producers.start()

    async def find_positions(self, partitions: frozenset[TopicPartition]) -> None:
        """Leave the partitions at the group's committed offsets, where the consumer begins."""

    async def begin(self) -> OpenTransaction | None:
        """Begin a transaction; None if there is nothing to consume in it any more."""
        while True:
            try:
                await self._producers.present.begin_transaction()
            except RetriableError as error:
                if self._pausing.stopping:
                    return None
                _log.warning("beginning again: %s", error)
                await self._pausing.pause()
            except ApplicationRecoverableError as end:
                await self._producers.replace(end)
                self._consumer.seek_to_committed()
                return None
            else:
                outputs = Outputs(self._producers.present)
                return OpenTransaction((outputs,), outputs)

    async def commit(self, ends: Mapping[TopicPartition, OffsetAndMetadata], _taken: Input) -> None:
        """Commit; asks again until the outcome is definite, or cannot be asked for."""
        producer = self._producers.present
        await self._send_offsets(producer, ends)
        while True:
            try:
                await producer.commit()
            except TransactionOutcomeUnknownError as error:
                self.unknown += 1
                if isinstance(error.__cause__, asyncio.CancelledError):
                    raise error.__cause__ from None  # what it became, the next start finds out
                if not error.can_ask_again or self._pausing.stopping:
                    raise
                _log.warning("asking for the outcome again: %s", error)
                await self._pausing.pause()
            else:
                return

    async def undo(self, taken: Input, error: Exception) -> None:
        """End the transaction, and go back to where it began, or to the committed offsets."""
        if isinstance(error, TransactionOutcomeUnknownError):
            if self._pausing.stopping:
                raise error
            await self._producers.replace(error)
            self._consumer.seek_to_committed()
            return
        try:
            await self._abort()
        except InvalidRequestError:
            raise
        except SemelError as end:
            await self._producers.replace(end, error)
            self._consumer.seek_to_committed()
        else:
            go_back(self._consumer, taken)

    async def close(self) -> None:
        """Abort the open transaction, or commit it if the commit was sent."""
        await self._producers.close()

    async def _send_offsets(
        self, producer: TransactionalProducer, ends: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        try:
            await producer.send_offsets(ends, self._consumer.group_metadata())
        except Exception as error:
            raise StopError from error

    async def _abort(self) -> None:
        while True:
            try:
                await self._producers.present.abort()
            except RetriableError as error:
                if self._pausing.stopping:
                    return  # closing the producer does what can be done
                _log.warning("aborting again: %s", error)
                await self._pausing.pause()
            else:
                return
