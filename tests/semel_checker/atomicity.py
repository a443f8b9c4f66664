"""Transactions as a whole (C10, C17, C19): all or nothing, and one outcome that all agree on."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from semel_checker.facts import Facts, Written
from semel_checker.names import AbortReason, Joint, Outcome, Partition, TransactionState, Writer
from semel_checker.observations import FinalPartition, FinalTransaction
from semel_checker.operations import (
    AskOutcome,
    OutcomeTold,
)
from semel_checker.transactions import Transaction, Unit
from semel_checker.violations import Rule, Violation

DEFINITE = (TransactionState.COMMITTED, TransactionState.ABORTED)


def check_torn(facts: Facts) -> list[Violation]:
    """C10."""
    by_unit: dict[Unit, list[Written]] = {}
    for written in facts.written.values():
        if written.transactional and written.call.outcome is not Outcome.FAILED:
            by_unit.setdefault(facts.transactions.unit_of(written.writer), []).append(written)
    found: list[Violation] = []
    for unit, sent in by_unit.items():
        transaction = facts.transactions.units.get(unit)
        if transaction is None or transaction.state is not TransactionState.COMMITTED:
            continue
        missing = _missing(facts, transaction, sent)
        if missing:
            names = ", ".join(map(str, missing))
            what = f"of {_name(unit)} others are visible, and not {names}"
            visible = next(written for written in sent if facts.is_visible(written))
            calls = {written.call.op: written.call for written in [visible, *missing]}
            found.append(facts.violation(Rule.C10, what, *calls.values()))
    return found


def _missing(facts: Facts, transaction: Transaction, sent: list[Written]) -> list[Written]:
    """Return the values missing beside visible ones, for the attempt that leaves the fewest."""
    if not transaction.seen:
        return []
    choices = [
        [written for written in sent if written.writer in writers and _is_missing(facts, written)]
        for writers in transaction.candidates
    ]
    return min(choices, key=len)


def _is_missing(facts: Facts, written: Written) -> bool:
    is_gone = not facts.is_visible(written) and not facts.is_excused(written)
    return is_gone and facts.has_ended_below(written)


class _Word(NamedTuple):
    """A state that an answer or a journal reports of a transaction, and its place; -1: the end."""

    state: TransactionState
    who: str
    op: int | None
    since: int
    until: int


def check_outcomes(facts: Facts) -> list[Violation]:
    """C19: clients, coordinators and markers say the same."""
    words: dict[Writer, list[_Word]] = {}
    for writer, word in (*_client_words(facts), *_coordinator_words(facts), *_marker_words(facts)):
        words.setdefault(writer, []).append(word)
    found = [
        facts.violation(
            Rule.C19,
            f"{_name(writer)} is "
            + ", but ".join(f"{word.state} says {word.who}" for word in conflict),
            *(word.op for word in conflict if word.op is not None),
        )
        for writer, said in words.items()
        if (conflict := _conflict(said))
    ]
    for final in facts.finals.values():
        found += _check_markers(facts, final)
    return found + _check_participants(facts)


def _client_words(facts: Facts) -> Iterator[tuple[Writer, _Word]]:
    end = len(facts.history)
    returns = {call.op: call.returned for kind in facts.calls.by_kind.values() for call in kind}
    for transaction in facts.transactions.units.values():
        unit = transaction.unit
        attempted = frozenset[Writer]().union(*(a.writers for a in transaction.attempts))
        writers = sorted(attempted) if isinstance(unit, Joint) else [unit]
        for op in transaction.aborted_by:
            word = _Word(TransactionState.ABORTED, "its client", op, returns[op], end)
            yield from ((writer, word) for writer in writers)
        for attempt in transaction.committed_by[:1]:
            for writer in writers:
                among = [writer in offer for offer in transaction.offered]
                if all(among) or not any(among):
                    said = TransactionState.COMMITTED if all(among) else TransactionState.ABORTED
                    yield writer, _Word(said, "its client", attempt.op, attempt.returned, end)


def _coordinator_words(facts: Facts) -> Iterator[tuple[Writer, _Word]]:
    for call in facts.calls.of(AskOutcome, OutcomeTold):
        if call.result is not None:
            word = _Word(call.result.state, "who was asked", call.op, call.returned, call.invoked)
            yield call.operation.writer, word
    end = len(facts.history)
    for _, final in facts.observed(FinalTransaction):
        yield final.writer, _Word(final.state, "its coordinator", None, end, end)


def _marker_words(facts: Facts) -> Iterator[tuple[Writer, _Word]]:
    end = len(facts.history)
    for final in facts.finals.values():
        for marker in final.markers or ():
            state = TransactionState.COMMITTED if marker.commit else TransactionState.ABORTED
            who = f"its marker in {final.partition.topic}-{final.partition.partition}"
            yield marker.writer, _Word(state, who, None, end, end)


def _conflict(said: list[_Word]) -> list[_Word]:
    """Return two words that cannot both be true."""
    definite = [word for word in said if word.state in DEFINITE]
    for word in definite:
        if word.state is not definite[0].state:
            return [definite[0], word]
    if not definite:
        return []
    first = min(definite, key=lambda word: word.since)
    undecided = (TransactionState.ONGOING, TransactionState.PREPARED)
    # An answer to a question after the decision was known may not call it undecided.
    late = [word for word in said if word.state in undecided and word.until > first.since]
    return [first, late[0]] if late else []


def _check_markers(facts: Facts, final: FinalPartition) -> Iterator[Violation]:
    place = f"{final.partition.topic}-{final.partition.partition}"
    for writer, count in Counter(marker.writer for marker in final.markers or ()).items():
        if count > 1:
            yield facts.violation(Rule.C19, f"{_name(writer)} has {count} markers in {place}")
    for entry in final.aborted or ():
        transaction = facts.transactions.units.get(facts.transactions.unit_of(entry.writer))
        if transaction and transaction.state_of(entry.writer) is TransactionState.COMMITTED:
            what = f"{_name(entry.writer)} is committed, and in the aborted index of {place}"
            yield facts.violation(Rule.C19, what)


def _check_participants(facts: Facts) -> list[Violation]:
    """C19: each partition of a decided transaction that kept its log has its marker."""
    marked = {
        (final.partition, marker.writer)
        for final in facts.finals.values()
        for marker in final.markers or ()
    }
    return [
        facts.violation(
            Rule.C19,
            f"{_name(told.writer)} is {told.state}, without a marker in"
            f" {partition.topic}-{partition.partition}",
        )
        for _, told in facts.observed(FinalTransaction)
        if told.state is TransactionState.COMMITTED
        for partition in told.partitions
        if _keeps_markers(facts, partition) and (partition, told.writer) not in marked
    ]


def _keeps_markers(facts: Facts, partition: Partition) -> bool:
    final = facts.finals.get(partition)
    topic = facts.topics.get(partition.topic)
    is_whole = final is not None and final.markers is not None and final.log_start_offset == 0
    return is_whole and (topic is None or not topic.compacted)


def check_foreign_ends(facts: Facts) -> list[Violation]:
    """C17: the ends of transactions that differ from the end that their own client asked for."""
    found: list[Violation] = []
    for writer, state, reason, op in _told(facts):
        unit = facts.transactions.unit_of(writer)
        if isinstance(unit, Joint) or not facts.transactions.earlier_end(writer):
            continue
        transaction = facts.transactions.units.get(unit)
        ops = [] if op is None else [op]
        if state is TransactionState.COMMITTED and not (transaction and transaction.attempts):
            what = f"{_name(writer)} is committed, and nobody asked for it"
            found.append(facts.violation(Rule.C17, what, *ops))
        own_abort = transaction is not None and transaction.abort_asked
        if reason is AbortReason.CLIENT and not own_abort:
            what = f"{_name(writer)} is aborted by its client, which never asked for it"
            found.append(facts.violation(Rule.C17, what, *ops))
    return found


def _told(
    facts: Facts,
) -> Iterator[tuple[Writer, TransactionState, AbortReason | None, int | None]]:
    for call in facts.calls.of(AskOutcome, OutcomeTold):
        if call.result is not None:
            yield call.operation.writer, call.result.state, call.result.reason, call.op
    for _, final in facts.observed(FinalTransaction):
        yield final.writer, final.state, final.reason, None


def _name(unit: Unit) -> str:
    if isinstance(unit, Joint):
        return f"run {unit.run} of version {unit.txn_version} of {unit.transactional_id}"
    return f"transaction {unit.producer_id}/{unit.producer_epoch}"
