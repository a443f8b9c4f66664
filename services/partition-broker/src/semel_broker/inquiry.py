"""Asks coordinators about transactions that stay open, so that no partition hangs on one.

See protocol.md, section 6. While transactions are open, the machine is asked every tick which of
them are due; otherwise the loop sleeps. All that are due at one coordinator go into one request.
An answer is applied exactly as the marker would be.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

import structlog

from semel.common.v1.participants_pb2 import Participant
from semel.common.v1.participants_pb2 import TopicPartition as WirePartition
from semel.coordinator.v1.transactions_pb2 import (
    InquireTransactionsRequest,
    Inquiry,
    InquiryAnswer,
    InquiryOutcome,
)
from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import BatchAppended, Record
from semel_broker.machine.values import OpenTransactionAt, Outcome
from semel_broker.writer import BrokerWriter
from semel_common.errors import SemelError
from semel_common.wire.connection import Connector
from semel_common.wire.methods import INQUIRE_TRANSACTIONS
from semel_runtime.clock import Clock
from semel_runtime.cluster.image import ServiceRole
from semel_runtime.runner import Runner

log = structlog.get_logger(__name__)

_INQUIRIES_MAX = 1_000
"""As many go into one request; the rest waits for the next tick."""
_JITTER = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class InquiryOptions:
    """When to ask, and for how long."""

    tick_ms: int = 100
    """How often to look for transactions that are due, as long as any is open."""
    interval_ms: int = 10_000
    """How long to wait before the same transaction is asked about again."""
    retry_ms: int = 500
    """The same, if there was no answer."""
    request_timeout_ms: int = 5_000
    listener: str = "default"
    """Name of the coordinators' listener."""


class InquiryLoop:
    """Asks until every transaction has an outcome."""

    def __init__(
        self,
        runner: Runner[Record],
        machine: BrokerMachine,
        writer: BrokerWriter,
        connector: Connector,
        clock: Clock,
        random: Random,
        options: InquiryOptions,
    ) -> None:
        self._runner = runner
        self._machine = machine
        self._writer = writer
        self._connector = connector
        self._clock = clock
        self._random = random
        self._options = options
        self._opened = asyncio.Event()
        self._opened.set()  # A process before this one may have left some open.
        self._next_ask: dict[OpenTransactionAt, float] = {}
        self._asking: set[int] = set()

    async def run(self) -> None:
        """Ask, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._opened.wait()
                if not self._machine.has_open_transactions():
                    self._opened.clear()
                    self._next_ask.clear()
                    continue
                await asyncio.sleep(self._jittered_s(self._options.tick_ms))
                await self.ask(group)

    def on_durable(self, records: Sequence[Record]) -> None:
        """Note that transactions may have been opened."""
        if not self._opened.is_set() and any(
            isinstance(record, BatchAppended) and record.transactional for record in records
        ):
            self._opened.set()

    async def ask(self, group: asyncio.TaskGroup) -> None:
        """Ask about all that are due and have not been asked about just now.

        Each coordinator is asked in a task of its own, one question at a time: the others need not
        wait for one that does not answer.
        """
        decide = partial(self._machine.transactions_to_inquire, now_ms=self._clock.now_ms())
        due = await self._runner.run(decide)
        now = asyncio.get_running_loop().time()
        self._next_ask = {each: at for each in due if (at := self._next_ask.get(each, 0)) > now}
        by_coordinator: dict[int, list[OpenTransactionAt]] = defaultdict(list)
        for each in due:
            if each not in self._next_ask:
                coordinator = self._machine.cluster.coordinator_of(each.producer_id)
                by_coordinator[coordinator].append(each)
        for coordinator, transactions in by_coordinator.items():
            if coordinator not in self._asking:
                self._asking.add(coordinator)
                group.create_task(
                    self._ask(coordinator, transactions[:_INQUIRIES_MAX]),
                    name=f"inquiry at coordinator {coordinator}",
                )

    async def _ask(self, coordinator: int, transactions: list[OpenTransactionAt]) -> None:
        try:
            answers = await self._call(coordinator, transactions)
            self._ask_again_in(self._options.retry_ms, transactions)
            await self._apply(transactions, answers)
        except SemelError as error:
            self._ask_again_in(self._options.retry_ms, transactions)
            log.warning(
                "coordinator cannot be asked about transactions",
                coordinator=coordinator,
                transactions=len(transactions),
                error=error.message,
            )
        finally:
            self._asking.discard(coordinator)

    async def _call(
        self, coordinator: int, transactions: Sequence[OpenTransactionAt]
    ) -> Sequence[InquiryAnswer]:
        cluster = self._machine.cluster
        address = cluster.address(ServiceRole.COORDINATOR, coordinator, self._options.listener)
        request = InquireTransactionsRequest(
            cluster_id=cluster.cluster_id, inquiries=map(_inquiry, transactions)
        )
        timeout_ms = self._options.request_timeout_ms
        connection = self._connector.connect(address)
        response = await connection.call(INQUIRE_TRANSACTIONS, request, timeout_ms=timeout_ms)
        return response.answers

    async def _apply(
        self, transactions: Sequence[OpenTransactionAt], answers: Sequence[InquiryAnswer]
    ) -> None:
        decided: list[Outcome] = []
        for transaction, answer in zip(transactions, answers, strict=False):
            if answer.outcome == InquiryOutcome.INQUIRY_OUTCOME_ONGOING:
                wait_ms = min(self._options.interval_ms, answer.time_left_ms + 1)
                self._ask_again_in(wait_ms, [transaction])
            elif answer.outcome in _DECIDED:
                decided.append(_outcome(transaction, answer))
                _log_outcome(transaction, answer)
        for outcome, refusal in zip(decided, await self._writer.apply(decided), strict=True):
            if refusal is not None:
                log.warning("inquiry's answer refused", error=refusal.message, outcome=outcome)

    def _ask_again_in(self, wait_ms: int, transactions: Sequence[OpenTransactionAt]) -> None:
        at = asyncio.get_running_loop().time() + self._jittered_s(wait_ms)
        for transaction in transactions:
            self._next_ask[transaction] = at

    def _jittered_s(self, duration_ms: int) -> float:
        return duration_ms / 1000 * self._random.uniform(1 - _JITTER, 1)


_DECIDED = (
    InquiryOutcome.INQUIRY_OUTCOME_COMMITTED,
    InquiryOutcome.INQUIRY_OUTCOME_ABORTED,
    InquiryOutcome.INQUIRY_OUTCOME_NEVER_GIVEN,
)


def _inquiry(transaction: OpenTransactionAt) -> Inquiry:
    topic_id, partition = transaction.partition
    participant = Participant(topic_partition=WirePartition(topic_id=topic_id, partition=partition))
    return Inquiry(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        participant=participant,
    )


def _outcome(transaction: OpenTransactionAt, answer: InquiryAnswer) -> Outcome:
    never_given = answer.outcome == InquiryOutcome.INQUIRY_OUTCOME_NEVER_GIVEN
    return Outcome(
        partition=transaction.partition,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        committed=answer.outcome == InquiryOutcome.INQUIRY_OUTCOME_COMMITTED,
        coordinator_epoch=answer.coordinator_epoch,
        current_epoch=answer.current_epoch if never_given else None,
    )


def _log_outcome(transaction: OpenTransactionAt, answer: InquiryAnswer) -> None:
    level = (
        log.warning if answer.outcome == InquiryOutcome.INQUIRY_OUTCOME_NEVER_GIVEN else log.info
    )
    level(
        "transaction ended by inquiry",
        outcome=InquiryOutcome.Name(answer.outcome),
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topic_id=transaction.partition.topic_id,
        partition=transaction.partition.partition,
    )
