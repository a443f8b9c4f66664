"""The outcome of each transaction, as far as its clients, its coordinator and its readers tell.

A unit is decided at once: a transaction of one writer, or a joint transaction with all its writers.
A commit attempt names the writers of the records that it would commit.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from semel_checker.calls import Call, Calls
from semel_checker.names import Joint, Outcome, TransactionState, Writer
from semel_checker.observations import FinalTransaction
from semel_checker.operations import (
    AskOutcome,
    EndJoint,
    EndTransaction,
    Joined,
    JointEnded,
    JoinTransaction,
    OutcomeTold,
)

Unit = Writer | Joint


class Attempt(NamedTuple):
    """A request to commit a unit."""

    op: int
    process: str
    invoked: int
    returned: int
    outcome: Outcome
    writers: frozenset[Writer]
    successor: Writer | None


@dataclass(slots=True, kw_only=True)
class Transaction:
    """A unit, and the facts about it."""

    unit: Unit
    attempts: list[Attempt] = field(default_factory=list)
    abort_asked: list[int] = field(default_factory=list)
    """Operations that asked to abort it."""
    aborted_by: list[int] = field(default_factory=list)
    """Operations with an answer that it is aborted."""
    told: dict[Writer, TransactionState] = field(default_factory=dict)
    """COMMITTED or ABORTED, as the coordinator said."""
    seen: set[Writer] = field(default_factory=set)
    """Writers with a value that a committed reader has read."""

    @property
    def commit_invoked(self) -> int | None:
        """Where its commit was first asked for."""
        return min((attempt.invoked for attempt in self.attempts), default=None)

    @property
    def committed_by(self) -> list[Attempt]:
        """The attempts that were answered with success."""
        return [attempt for attempt in self.attempts if attempt.outcome is Outcome.OK]

    @property
    def state(self) -> TransactionState | None:
        """COMMITTED, ABORTED, or None if the history does not tell."""
        if self.committed_by:
            return TransactionState.COMMITTED
        if not self.attempts or self.aborted_by:
            return TransactionState.ABORTED
        if TransactionState.COMMITTED in self.told.values() or self.seen:
            return TransactionState.COMMITTED
        refused = {w for w, told in self.told.items() if told is TransactionState.ABORTED}
        if any(refused & attempt.writers for attempt in self.attempts):
            return TransactionState.ABORTED if len(self.attempts) == 1 else None
        return None

    @property
    def offered(self) -> list[frozenset[Writer]]:
        """The sets of writers with a commit attempt that was not refused.

        Success may be the answer to an earlier attempt, whose own answer was lost.
        """
        attempts = (each for each in self.attempts if each.outcome is not Outcome.FAILED)
        return list(dict.fromkeys(attempt.writers for attempt in attempts))

    @property
    def candidates(self) -> list[frozenset[Writer]]:
        """The sets of writers, one of which commits if the unit does."""
        found = self.offered
        told = {w for w, state in self.told.items() if state is TransactionState.COMMITTED}
        known = self.seen | told
        return [writers for writers in found if known <= writers] or found

    def state_of(self, writer: Writer) -> TransactionState | None:
        """Return what became of one writer's records."""
        if self.state is TransactionState.ABORTED:
            return TransactionState.ABORTED
        among = [writer in writers for writers in self.candidates]
        if not any(among):
            return TransactionState.ABORTED
        return self.state if all(among) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transactions:
    """All units of a history."""

    units: dict[Unit, Transaction]
    joints: dict[Writer, Joint]
    """The joint transactions of writers that belong to one."""
    first_ended: dict[int, int]
    """By producer id: the lowest epoch whose transaction was asked to end."""

    def unit_of(self, writer: Writer) -> Unit:
        """Return the unit that decides a writer's records."""
        return self.joints.get(writer, writer)

    def of(self, writer: Writer) -> Transaction:
        """Return the transaction of a writer, made here if nothing was recorded but its records."""
        unit = self.unit_of(writer)
        return self.units.setdefault(unit, Transaction(unit=unit))

    def state_of(self, writer: Writer) -> TransactionState | None:
        """Return the outcome of a writer's records: COMMITTED, ABORTED or None, unknown."""
        return self.of(writer).state_of(writer)

    def earlier_end(self, writer: Writer) -> bool:
        """Tell whether an earlier transaction of the same producer was asked to end."""
        epoch = self.first_ended.get(writer.producer_id, writer.producer_epoch)
        return epoch < writer.producer_epoch


def gather_transactions(calls: Calls, finals: Iterable[FinalTransaction]) -> Transactions:
    """Take from all requests and answers what they say of transactions."""
    joints = {
        call.result.writer: call.operation.joint
        for call in calls.of(JoinTransaction, Joined)
        if call.result is not None and call.result.writer is not None
    }
    ends = calls.without_result(EndTransaction)
    first_ended: dict[int, int] = {}
    for call in ends:
        writer = call.operation.writer
        epoch = first_ended.get(writer.producer_id, writer.producer_epoch)
        first_ended[writer.producer_id] = min(epoch, writer.producer_epoch)
    found = Transactions(units={}, joints=joints, first_ended=first_ended)
    for call in ends:
        _take_end(found.of(call.operation.writer), call)
    for joint_call in calls.of(EndJoint, JointEnded):
        _take_joint_end(found, joint_call)
    for asked in calls.of(AskOutcome, OutcomeTold):
        if asked.result is not None:
            _take_told(found, asked.operation.writer, asked.result.state)
    for final in finals:
        _take_told(found, final.writer, final.state)
    return found


def _take_end(transaction: Transaction, call: Call[EndTransaction, None]) -> None:
    end = call.operation
    if end.commit:
        writers = frozenset({end.writer})
        transaction.attempts.append(_attempt(call, writers, end.successor))
        if call.outcome is Outcome.FAILED:
            transaction.aborted_by.append(call.op)
        return
    transaction.abort_asked.append(call.op)
    if call.outcome is Outcome.OK:
        transaction.aborted_by.append(call.op)


def _take_joint_end(transactions: Transactions, call: Call[EndJoint, JointEnded]) -> None:
    end = call.operation
    transaction = transactions.units.setdefault(end.joint, Transaction(unit=end.joint))
    was_committed = call.result is not None and call.result.already_committed
    if not end.commit:
        transaction.abort_asked.append(call.op)
        if call.outcome is Outcome.OK and not was_committed:
            transaction.aborted_by.append(call.op)
    elif not was_committed:
        transaction.attempts.append(_attempt(call, frozenset(end.writers), None))
        if call.outcome is Outcome.FAILED:
            transaction.aborted_by.append(call.op)


def _attempt(
    call: Call[EndTransaction, None] | Call[EndJoint, JointEnded],
    writers: frozenset[Writer],
    successor: Writer | None,
) -> Attempt:
    return Attempt(
        op=call.op,
        process=call.process,
        invoked=call.invoked,
        returned=call.returned,
        outcome=call.outcome,
        writers=writers,
        successor=successor,
    )


def _take_told(transactions: Transactions, writer: Writer, state: TransactionState) -> None:
    if state in (TransactionState.COMMITTED, TransactionState.ABORTED):
        transactions.of(writer).told[writer] = state
