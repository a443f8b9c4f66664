"""Asks coordinators about transactions that stay open, so that nobody waits for ever for offsets.

See protocol.md, section 6. Theory of operation: while transactions are open, the machine is asked
every ``tick_ms`` which of them are due; otherwise the loop sleeps. ``ask_now`` adds those that
somebody waits for. All that are due at one coordinator go into one request, and each coordinator
has one request at a time: one that does not answer holds up nobody but its own transactions. An
answer is applied exactly as the marker would be.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

import structlog

from semel.common.v1.participants_pb2 import Participant
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import SemelError
from semel_common.wire.connection import Connector
from semel_common.wire.methods import INQUIRE_TRANSACTIONS
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record, TxnOffsetsCommitted
from semel_group.machine.values import InquiryAnswer, InquiryOutcome, OpenTransaction
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
    """How long to wait before a transaction that goes on is asked about again."""
    retry_ms: int = 200
    """The same, if there was no answer, or if somebody waits for its offsets."""
    request_timeout_ms: int = 5_000
    listener: str = "default"
    """Name of the coordinators' listener."""


@dataclass(slots=True)
class _Asked:
    """When a transaction may be asked about again, in event-loop time (seconds)."""

    again_at: float
    again_at_if_awaited: float


class Inquirer:
    """Asks until every transaction has an outcome."""

    def __init__(
        self,
        runner: Runner[Record],
        machine: GroupMachine,
        *,
        connector: Connector,
        clock: Clock,
        random: Random,
        options: InquiryOptions,
    ) -> None:
        """Do nothing yet."""
        self._runner = runner
        self._machine = machine
        self._connector = connector
        self._clock = clock
        self._random = random
        self._options = options
        self._wake = asyncio.Event()
        self._awaited: set[OpenTransaction] = set()
        self._asked: dict[OpenTransaction, _Asked] = {}
        self._busy: set[int] = set()
        self._unreachable: set[int] = set()
        """Coordinators whose last request failed: of failures in a row, the first one is told."""

    async def run(self) -> None:
        """Ask, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                for coordinator, due in (await self._due()).items():
                    self._busy.add(coordinator)
                    group.create_task(
                        self._ask(coordinator, due), name=f"inquiry at coordinator {coordinator}"
                    )
                await self._sleep()

    def ask_now(self, transactions: Iterable[OpenTransaction]) -> None:
        """Ask about these without waiting for their time: somebody waits for their offsets."""
        self._awaited.update(transactions)
        if self._awaited:
            self._wake.set()

    def on_durable(self, records: Sequence[Record]) -> None:
        """Note that a transaction may have begun."""
        if any(isinstance(record, TxnOffsetsCommitted) for record in records):
            self._wake.set()

    # -- which -----------------------------------------------------------------------------------

    async def _due(self) -> dict[int, list[OpenTransaction]]:
        """Return what to ask now, by coordinator, leaving out those that have a request already."""
        awaited, self._awaited = self._awaited, set()
        query = partial(self._machine.transactions_to_inquire, self._clock.now_ms(), awaited)
        due = await self._runner.run(query)
        now = asyncio.get_running_loop().time()
        self._asked = {each: self._asked[each] for each in due if each in self._asked}
        by_coordinator: dict[int, list[OpenTransaction]] = defaultdict(list)
        for each in due:
            coordinator = self._machine.cluster.coordinator_of(each.producer_id)
            if coordinator in self._busy or len(by_coordinator[coordinator]) >= _INQUIRIES_MAX:
                continue
            if self._may_ask(each, now, is_awaited=each in awaited):
                by_coordinator[coordinator].append(each)
        return {coordinator: each for coordinator, each in by_coordinator.items() if each}

    def _may_ask(self, transaction: OpenTransaction, now: float, *, is_awaited: bool) -> bool:
        asked = self._asked.get(transaction)
        if asked is None:
            return True
        return now >= (asked.again_at_if_awaited if is_awaited else asked.again_at)

    async def _sleep(self) -> None:
        """Wait for the next tick, or until woken; without open transactions, only for that."""
        self._wake.clear()
        tick_s = self._jittered_s(self._options.tick_ms) if self._machine.has_pending else None
        try:
            async with asyncio.timeout(tick_s):
                await self._wake.wait()
        except TimeoutError:
            return

    # -- one request -----------------------------------------------------------------------------

    async def _ask(self, coordinator: int, transactions: Sequence[OpenTransaction]) -> None:
        self._ask_again_in(self._options.retry_ms, transactions)
        try:
            answers = await self._call(coordinator, transactions)
            self._unreachable.discard(coordinator)
            await self._apply(transactions, answers)
        except SemelError as error:
            self._complain(coordinator, error)
        finally:
            self._busy.discard(coordinator)

    async def _call(
        self, coordinator: int, transactions: Sequence[OpenTransaction]
    ) -> Sequence[wire.InquiryAnswer]:
        cluster = self._machine.cluster
        address = cluster.address(ServiceRole.COORDINATOR, coordinator, self._options.listener)
        request = wire.InquireTransactionsRequest(
            cluster_id=cluster.cluster_id, inquiries=map(_inquiry, transactions)
        )
        timeout_ms = self._options.request_timeout_ms
        connection = self._connector.connect(address)
        response = await connection.call(INQUIRE_TRANSACTIONS, request, timeout_ms=timeout_ms)
        return response.answers

    async def _apply(
        self, transactions: Sequence[OpenTransaction], answers: Sequence[wire.InquiryAnswer]
    ) -> None:
        definite: list[InquiryAnswer] = []
        for transaction, answer in zip(transactions, answers, strict=False):
            if answer.outcome == wire.INQUIRY_OUTCOME_ONGOING:
                wait_ms = min(self._options.interval_ms, answer.time_left_ms + 1)
                self._ask_again_in(wait_ms, [transaction])
            elif answer.outcome in _DEFINITE:
                definite.append(_definite(transaction, answer))
        if definite:
            apply = partial(self._machine.apply_inquiry_answers, definite)
            for answered in await self._runner.run(apply, privileged=True):
                _log_outcome(answered)

    def _complain(self, coordinator: int, error: SemelError) -> None:
        level = log.debug if coordinator in self._unreachable else log.warning
        level(
            "coordinator cannot be asked about transactions",
            coordinator=coordinator,
            error=error.message,
        )
        self._unreachable.add(coordinator)

    def _ask_again_in(self, wait_ms: int, transactions: Sequence[OpenTransaction]) -> None:
        now = asyncio.get_running_loop().time()
        again_at = now + self._jittered_s(wait_ms)
        awaited_at = min(again_at, now + self._jittered_s(self._options.retry_ms))
        for transaction in transactions:
            self._asked[transaction] = _Asked(again_at, awaited_at)

    def _jittered_s(self, duration_ms: int) -> float:
        return duration_ms / 1000 * self._random.uniform(1 - _JITTER, 1)


_DEFINITE = frozenset(int(outcome) for outcome in InquiryOutcome)


def _inquiry(transaction: OpenTransaction) -> wire.Inquiry:
    return wire.Inquiry(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        participant=Participant(group_id=transaction.group_id),
    )


def _definite(transaction: OpenTransaction, answer: wire.InquiryAnswer) -> InquiryAnswer:
    return InquiryAnswer(
        transaction=transaction,
        outcome=InquiryOutcome(answer.outcome),
        coordinator_epoch=answer.coordinator_epoch,
        current_epoch=answer.current_epoch,
    )


def _log_outcome(answer: InquiryAnswer) -> None:
    made_up = answer.outcome is InquiryOutcome.NEVER_GIVEN
    level = log.warning if made_up else log.info
    level(
        "transaction ended by inquiry",
        outcome=answer.outcome.name,
        group_id=answer.transaction.group_id,
        producer_id=answer.transaction.producer_id,
        producer_epoch=answer.transaction.producer_epoch,
    )
