"""Fences (C16): a request of an older epoch after its successor began has no effect."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Generic, NamedTuple, TypeVar

from semel_checker.calls import Call
from semel_checker.facts import Facts
from semel_checker.names import Outcome, Partition, TransactionState, Writer
from semel_checker.observations import Assigned
from semel_checker.operations import (
    CommitOffsets,
    EndTransaction,
    Initialized,
    InitProducer,
    Send,
    Sent,
)
from semel_checker.violations import Rule, Violation

Key = TypeVar("Key")


class _Epochs(Generic[Key]):
    """The highest epoch that had answered for a key before some point of the history."""

    def __init__(self, seen: Iterable[tuple[int, Key, int]]) -> None:
        by_key: dict[Key, list[tuple[int, int]]] = {}
        for index, key, epoch in seen:
            by_key.setdefault(key, []).append((index, epoch))
        self._indexes: dict[Key, list[int]] = {}
        self._epochs: dict[Key, list[int]] = {}
        for key, each in by_key.items():
            each.sort()
            self._indexes[key] = [index for index, _ in each]
            self._epochs[key] = list(accumulate((epoch for _, epoch in each), max))

    def before(self, key: Key, index: int) -> int:
        """Return the highest epoch, -1 for none."""
        count = bisect_left(self._indexes.get(key, []), index)
        return self._epochs[key][count - 1] if count else -1


def check_fences(facts: Facts) -> list[Violation]:
    """C16 for producers."""
    begun = _Epochs(
        (call.returned, call.result.writer.producer_id, call.result.writer.producer_epoch)
        for call in facts.calls.of(InitProducer, Initialized)
        if call.result is not None and call.outcome is Outcome.OK
    )
    return [
        *_late_commits(facts, begun),
        *_late_records(facts, begun),
        *_late_answers(facts),
        *_shared_epochs(facts),
    ]


def _late_commits(facts: Facts, begun: _Epochs[int]) -> Iterator[Violation]:
    """An epoch has not committed if it asked for its first commit after its successor began."""
    for transaction in facts.transactions.units.values():
        unit = transaction.unit
        if not isinstance(unit, Writer) or not transaction.attempts:
            continue
        first = min(transaction.attempts, key=lambda attempt: attempt.invoked)
        successor = begun.before(unit.producer_id, first.invoked)
        # A successor that kept it may complete a prepared transaction.
        is_late = successor > unit.producer_epoch and first.successor is None
        if is_late and transaction.state is TransactionState.COMMITTED:
            what = f"epoch {unit.producer_epoch} committed after {successor} had begun"
            yield facts.violation(Rule.C16, what, *(attempt.op for attempt in transaction.attempts))


def _late_records(facts: Facts, begun: _Epochs[int]) -> Iterator[Violation]:
    for value, written in facts.written.items():
        successor = begun.before(written.writer.producer_id, written.call.invoked)
        if successor > written.writer.producer_epoch and facts.is_visible(written):
            what = f"{value} was sent by epoch {written.writer.producer_epoch}"
            yield facts.violation(Rule.C16, f"{what} after {successor} had begun", written.call)


def _late_answers(facts: Facts) -> Iterator[Violation]:
    """A participant that has stored a newer epoch takes nothing of an older one.

    Before that, it may: it learns of the fence with the marker, or by asking.
    """
    sends = [
        (call, call.operation.writer)
        for call in facts.calls.of(Send, Sent)
        if call.outcome is Outcome.OK
    ]
    stored = _Epochs(
        (call.returned, (writer.producer_id, call.operation.partition), writer.producer_epoch)
        for call, writer in sends
    )
    for call, writer in sends:
        newer = stored.before((writer.producer_id, call.operation.partition), call.invoked)
        if newer > writer.producer_epoch:
            what = f"a send of epoch {writer.producer_epoch} was taken after one of {newer}"
            yield facts.violation(Rule.C16, what, call)
    commits = [
        (call, call.operation.writer)
        for call in facts.calls.without_result(CommitOffsets)
        if call.outcome is Outcome.OK and call.operation.writer is not None
    ]
    offsets = _Epochs(
        (call.returned, (writer.producer_id, call.operation.group), writer.producer_epoch)
        for call, writer in commits
    )
    for commit, writer in commits:
        newer = offsets.before((writer.producer_id, commit.operation.group), commit.invoked)
        if newer > writer.producer_epoch:
            what = f"offsets of epoch {writer.producer_epoch} were taken after those of {newer}"
            yield facts.violation(Rule.C16, what, commit)


def _shared_epochs(facts: Facts) -> Iterator[Violation]:
    """An epoch belongs to one process: else a fenced one was given its successor's."""
    holders: dict[Writer, str] = {}
    ends = (e for e in facts.calls.without_result(EndTransaction) if e.operation.successor is None)
    calls: list[Call[Send, Sent] | Call[EndTransaction, None]]
    calls = [*facts.calls.of(Send, Sent), *ends]
    for call in sorted(calls, key=lambda call: call.invoked):
        writer = call.operation.writer
        if writer.producer_id and holders.setdefault(writer, call.process) != call.process:
            what = f"{holders[writer]} and {call.process} both write as {tuple(writer)}"
            yield facts.violation(Rule.C16, what, call)


class _Owner(NamedTuple):
    """The last owner of a partition of a group, as far as members know."""

    member: str
    member_epoch: int


def check_members(facts: Facts) -> list[Violation]:
    """C16 for members: a member that lost a partition to another commits no offset for it."""
    commits = facts.calls.without_result(CommitOffsets)
    steps: list[tuple[int, Assigned | int]] = [
        *facts.observed(Assigned),
        *((call.invoked, number) for number, call in enumerate(commits)),
    ]
    owners: dict[tuple[str, Partition], _Owner] = {}
    found: list[Violation] = []
    for _, step in sorted(steps, key=lambda step: step[0]):
        if isinstance(step, Assigned):
            for partition in step.partitions:
                owner = owners.get((step.group, partition))
                if owner is None or step.member_epoch >= owner.member_epoch:
                    owners[step.group, partition] = _Owner(step.member, step.member_epoch)
            continue
        call = commits[step]
        asked = call.operation
        for partition, *_ in asked.offsets if call.outcome is Outcome.OK else ():
            owner = owners.get((asked.group, partition))
            is_member = owner is not None and asked.member not in ("", owner.member)
            if owner is not None and is_member and asked.member_epoch < owner.member_epoch:
                what = f"{asked.member} of epoch {asked.member_epoch} committed for {partition},"
                what += f" which {owner.member} has since epoch {owner.member_epoch}"
                found.append(facts.violation(Rule.C16, what, call))
    return found
