"""Asks coordinators about transactions that stay open, so that no reader waits for ever.

See protocol.md, section 6. Theory of operation: while transactions are open, the participant is
asked every tick which of them are due, less often if they are thousands; otherwise the loop sleeps.
``ask_now`` adds transactions that a caller waits for. All due transactions of one coordinator go
into one request, and each coordinator has one request at a time: a silent coordinator delays only
its own transactions. The participant applies an answer exactly as it applies a marker.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, Protocol, TypeVar

import structlog

from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import SemelError
from semel_common.ids import GroupId, TopicPartition
from semel_common.wire.connection import Connector
from semel_common.wire.methods import INQUIRE_TRANSACTIONS
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ServiceRole
from semel_runtime.participant.inquiry import InquiryAnswer, InquiryOutcome, OpenTransactionAt, P

log = structlog.get_logger(__name__)

R_contra = TypeVar("R_contra", contravariant=True)
R = TypeVar("R")

_INQUIRIES_MAX = 1_000
"""As many go into one request; the rest waits for the next tick."""
_PAUSE_FOR_EACH_MS = 0.25
"""How long the pause is, once nothing is left to ask, for each transaction in the look: a
look takes about a fiftieth of that, and must not slow down running transactions."""
_JITTER = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class InquiryOptions:
    """How to ask, and for how long."""

    tick_ms: int = 250
    """How often to look for transactions that are due, as long as any is open."""
    interval_ms: int = 10_000
    """How long to wait before a transaction that goes on is asked about again."""
    retry_ms: int = 200
    """The same, if there was no answer, or if a caller waits for the outcome."""
    request_timeout_ms: int = 5_000
    listener: str = "default"
    """Name of the coordinators' listener."""


class Inquirer(Protocol[P, R_contra]):
    """A service's side: which transactions are open, and what an answer does."""

    def opens_transaction(self, record: R_contra) -> bool:
        """Whether a record may have opened a transaction."""
        ...

    def has_open_transactions(self) -> bool:
        """Whether any is open."""
        ...

    async def due(
        self, awaited: Collection[OpenTransactionAt[P]]
    ) -> Sequence[OpenTransactionAt[P]]:
        """Return the due transactions, and the open ones of ``awaited``, in order."""
        ...

    async def apply(self, answers: Sequence[InquiryAnswer[P]]) -> Sequence[InquiryAnswer[P]]:
        """Apply the answers. Return the answers that ended a transaction, once that is durable."""
        ...


@dataclass(slots=True)
class _Asked:
    """When a transaction may be asked about again, in event-loop time (seconds)."""

    again_at: float
    again_at_if_awaited: float


class InquiryLoop(Generic[P, R]):
    """Asks until every transaction has an outcome."""

    def __init__(
        self,
        inquirer: Inquirer[P, R],
        cluster: ClusterCopy,
        *,
        connector: Connector,
        random: Random,
        options: InquiryOptions,
    ) -> None:
        """Do nothing yet."""
        self._inquirer: Inquirer[P, R] = inquirer
        self._cluster = cluster
        self._connector = connector
        self._random = random
        self._options = options
        self._opened = asyncio.Event()
        self._hurried = asyncio.Event()
        self._awaited: set[OpenTransactionAt[P]] = set()
        self._asked: dict[OpenTransactionAt[P], _Asked] = {}
        self._busy: set[int] = set()
        self._rest_ms = 0.0
        self._unreachable: set[int] = set()
        """Coordinators whose last request failed: of failures in a row, the first one is told."""

    async def run(self) -> None:
        """Ask, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._sleep()
                await self.ask(group)

    def ask_now(self, transactions: Iterable[OpenTransactionAt[P]]) -> None:
        """Ask about these at once: a caller waits for their outcome."""
        self._awaited.update(transactions)
        if self._awaited:
            self._opened.set()
            self._hurried.set()

    def on_durable(self, records: Sequence[R]) -> None:
        """Note that a transaction may have begun."""
        if not self._opened.is_set() and any(map(self._inquirer.opens_transaction, records)):
            self._opened.set()

    async def ask(self, group: asyncio.TaskGroup) -> None:
        """Ask about all that are due, each coordinator in a task of its own."""
        for coordinator, due in (await self._due()).items():
            self._busy.add(coordinator)
            group.create_task(
                self._ask(coordinator, due), name=f"inquiry at coordinator {coordinator}"
            )

    # -- which -----------------------------------------------------------------------------------

    async def _sleep(self) -> None:
        """Wait for the next tick or for a waiting caller; without open transactions, for one."""
        if not self._inquirer.has_open_transactions() and not self._awaited:
            self._opened.clear()
            self._asked.clear()
            await self._opened.wait()
        try:
            pause_ms = max(self._options.tick_ms, self._rest_ms)
            async with asyncio.timeout(self._jittered_s(pause_ms)):
                await self._hurried.wait()
        except TimeoutError:
            return

    async def _due(self) -> dict[int, list[OpenTransactionAt[P]]]:
        """Return the transactions to ask about now, for each coordinator without a request."""
        self._hurried.clear()
        awaited, self._awaited = self._awaited, set()
        due = await self._inquirer.due(awaited)
        now = asyncio.get_running_loop().time()
        self._asked = {each: self._asked[each] for each in due if each in self._asked}
        by_coordinator: dict[int, list[OpenTransactionAt[P]]] = defaultdict(list)
        for inquiry in due:
            coordinator = self._cluster.coordinator_of(inquiry.producer_id)
            if coordinator in self._busy or len(by_coordinator[coordinator]) >= _INQUIRIES_MAX:
                continue
            if self._may_ask(inquiry, now, is_awaited=inquiry in awaited):
                by_coordinator[coordinator].append(inquiry)
        to_ask = {coordinator: each for coordinator, each in by_coordinator.items() if each}
        self._rest_ms = 0 if to_ask or self._busy else len(due) * _PAUSE_FOR_EACH_MS
        return to_ask

    def _may_ask(self, transaction: OpenTransactionAt[P], now: float, *, is_awaited: bool) -> bool:
        asked = self._asked.get(transaction)
        if asked is None:
            return True
        return now >= (asked.again_at_if_awaited if is_awaited else asked.again_at)

    # -- one request -----------------------------------------------------------------------------

    async def _ask(self, coordinator: int, transactions: Sequence[OpenTransactionAt[P]]) -> None:
        try:
            answers = await self._call(coordinator, transactions)
            self._unreachable.discard(coordinator)
            self._ask_again_in(self._options.retry_ms, transactions)
            await self._apply(transactions, answers)
        except SemelError as error:
            self._ask_again_in(self._options.retry_ms, transactions)
            self._complain(coordinator, error)
        finally:
            self._busy.discard(coordinator)

    async def _call(
        self, coordinator: int, transactions: Sequence[OpenTransactionAt[P]]
    ) -> Sequence[wire.InquiryAnswer]:
        listener = self._options.listener
        address = self._cluster.address(ServiceRole.COORDINATOR, coordinator, listener)
        request = wire.InquireTransactionsRequest(
            cluster_id=self._cluster.cluster_id, inquiries=map(_inquiry, transactions)
        )
        timeout_ms = self._options.request_timeout_ms
        connection = self._connector.connect(address)
        response = await connection.call(INQUIRE_TRANSACTIONS, request, timeout_ms=timeout_ms)
        return response.answers

    async def _apply(
        self,
        transactions: Sequence[OpenTransactionAt[P]],
        answers: Sequence[wire.InquiryAnswer],
    ) -> None:
        definite: list[InquiryAnswer[P]] = []
        for transaction, answer in zip(transactions, answers, strict=False):
            if answer.outcome == wire.INQUIRY_OUTCOME_ONGOING:
                wait_ms = min(self._options.interval_ms, answer.time_left_ms + 1)
                self._ask_again_in(wait_ms, [transaction])
            elif answer.outcome in _DEFINITE:
                definite.append(_definite(transaction, answer))
        if definite:
            for ended in await self._inquirer.apply(definite):
                _log_outcome(ended)

    def _complain(self, coordinator: int, error: SemelError) -> None:
        level = log.debug if coordinator in self._unreachable else log.warning
        level(
            "coordinator cannot be asked about transactions",
            coordinator=coordinator,
            error=error.message,
        )
        self._unreachable.add(coordinator)

    def _ask_again_in(self, wait_ms: int, transactions: Sequence[OpenTransactionAt[P]]) -> None:
        now = asyncio.get_running_loop().time()
        again_at = now + self._jittered_s(wait_ms)
        awaited_at = min(again_at, now + self._jittered_s(self._options.retry_ms))
        for transaction in transactions:
            self._asked[transaction] = _Asked(again_at, awaited_at)

    def _jittered_s(self, duration_ms: float) -> float:
        return duration_ms / 1000 * self._random.uniform(1 - _JITTER, 1)


_DEFINITE = frozenset(int(outcome) for outcome in InquiryOutcome)


def _inquiry(transaction: OpenTransactionAt[P]) -> wire.Inquiry:
    return wire.Inquiry(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        participant=participant_to_wire(transaction.participant),
    )


def participant_to_wire(participant: TopicPartition | GroupId) -> participants.Participant:
    """Name a participant in a question to a coordinator."""
    if isinstance(participant, GroupId):
        return participants.Participant(group_id=participant.group_id)
    topic_id, partition = participant
    place = participants.TopicPartition(topic_id=topic_id, partition=partition)
    return participants.Participant(topic_partition=place)


def _definite(transaction: OpenTransactionAt[P], answer: wire.InquiryAnswer) -> InquiryAnswer[P]:
    return InquiryAnswer(
        transaction=transaction,
        outcome=InquiryOutcome(answer.outcome),
        coordinator_epoch=answer.coordinator_epoch,
        current_epoch=answer.current_epoch,
    )


def _log_outcome(answer: InquiryAnswer[P]) -> None:
    made_up = answer.outcome is InquiryOutcome.NEVER_GIVEN
    level = log.warning if made_up else log.info
    transaction = answer.transaction
    level(
        "transaction ended by inquiry",
        outcome=answer.outcome.name,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        **transaction.participant._asdict(),
    )
