"""The tables that all checks read, each filled by one pass over the history."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from semel_checker.calls import Call, Calls, join_calls
from semel_checker.history import History, Invoked, Returned
from semel_checker.names import Isolation, Outcome, Partition, TransactionState, Writer
from semel_checker.observations import FinalPartition, FinalTransaction, Observation, TopicMade
from semel_checker.operations import (
    DeleteRecords,
    PartitionRead,
    Poll,
    Polled,
    Send,
    Sent,
    SentRecord,
)
from semel_checker.storage import to_lines
from semel_checker.transactions import Transaction, Transactions, gather_transactions
from semel_checker.violations import Rule, Violation

EXCERPT_LINE_MAX = 300
EXCERPT_LINES_MAX = 8
UNKNOWN_OFFSET = 1 << 62
"""Above all that are known."""

T = TypeVar("T")


class Written(NamedTuple):
    """A record that was sent."""

    record: SentRecord
    partition: Partition
    offset: int | None
    """Where it was stored, if its sender learned it."""
    call: Call[Send, Sent]

    @property
    def writer(self) -> Writer:
        """The process that sent it."""
        return self.call.operation.writer

    @property
    def transactional(self) -> bool:
        """Whether it is part of a transaction."""
        return self.call.operation.transactional

    def __str__(self) -> str:
        return self.record.value


class Reading(NamedTuple):
    """The records that a poll got of one partition, with the poll."""

    call: Call[Poll, Polled]
    read: PartitionRead

    @property
    def start(self) -> int | None:
        """The first offset that it covers; None if it covers nothing."""
        if self.read.position is not None:
            return self.read.position
        return self.read.records[0].offset if self.read.records else None

    @property
    def end(self) -> int | None:
        """The offset after the last that it covers."""
        if self.read.next_position is not None:
            return self.read.next_position
        return self.read.records[-1].offset + 1 if self.read.records else None

    @property
    def committed(self) -> bool:
        """Whether it was read committed."""
        return self.call.operation.isolation is Isolation.READ_COMMITTED


@dataclass(slots=True, kw_only=True)
class PartitionLog:
    """The facts about a partition's log, from all its senders and readers."""

    values: dict[int, set[str]] = field(default_factory=dict)
    visible: dict[int, str] = field(default_factory=dict)
    """Values that any committed reader has read."""
    offsets: list[int] = field(default_factory=list)
    """The keys of `values`, in order."""
    visible_offsets: list[int] = field(default_factory=list)
    of_key: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Offset and value of each key's records that are not known to be aborted, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A history, and all tables of it."""

    history: History
    observations: list[tuple[int, Observation]]
    """All that is no operation, with their indexes."""
    calls: Calls
    transactions: Transactions
    written: dict[str, Written]
    readings: list[Reading]
    """In order of their returns."""
    finals: dict[Partition, FinalPartition]
    topics: dict[str, TopicMade]
    logs: dict[Partition, PartitionLog]
    sightings: dict[str, int]
    """Where a value was first read committed by a poll: the index of the poll's return."""
    deleted_below: dict[Partition, int]
    visible: set[str]
    """All values that were read committed."""
    states: dict[str, TransactionState | None]

    def observed(self, kind: type[T]) -> Iterator[tuple[int, T]]:
        """Yield the observations of a kind, with their indexes."""
        for index, what in self.observations:
            if isinstance(what, kind):
                yield index, what

    def log(self, partition: Partition) -> PartitionLog:
        """Return the facts about a partition's log."""
        return self.logs.get(partition) or PartitionLog()

    def transaction_of(self, written: Written) -> Transaction | None:
        """Return the transaction of a record; None outside of transactions."""
        return self.transactions.of(written.writer) if written.transactional else None

    def state_of(self, written: Written) -> TransactionState | None:
        """Return the outcome of a record: COMMITTED, ABORTED or None, unknown."""
        return self.states[written.record.value]

    def is_visible(self, written: Written) -> bool:
        """Tell whether a committed reader has read it."""
        return written.record.value in self.visible

    def in_final(self, value: str) -> int | None:
        """Return the offset at which the final reading has a value of some sender."""
        written = self.written.get(value)
        final = self.finals.get(written.partition) if written else None
        return self.final_offsets(final).get(value) if final else None

    def final_offsets(self, final: FinalPartition) -> dict[str, int]:
        """Return where the final reading of a partition has each value."""
        return self._final_offsets[final.partition]

    _final_offsets: dict[Partition, dict[str, int]]

    def is_excused(self, written: Written) -> bool:
        """Tell whether a record may be gone: cut off, or compacted away."""
        return self.is_cut(written) or self._is_superseded(written)

    def is_cut(self, written: Written) -> bool:
        """Tell whether a record may be cut off, by retention or by an operator."""
        final = self.finals.get(written.partition)
        if final is None or final.log_start_offset == 0:
            return False
        topic = self.topics.get(written.partition.topic)
        offset = -1 if written.offset is None else written.offset
        may_be_cut = topic is not None and topic.retention
        below = final.log_start_offset if may_be_cut else 0
        below = max(below, self.deleted_below.get(written.partition, 0))
        return offset < min(below, final.log_start_offset)

    def _is_superseded(self, written: Written) -> bool:
        topic = self.topics.get(written.partition.topic)
        if topic is None or not topic.compacted:
            return False
        if written.record.tombstone:
            return True
        if written.record.key is None:
            return False
        last, _ = self.log(written.partition).of_key.get(written.record.key, [(-1, "")])[-1]
        return last > (-1 if written.offset is None else written.offset)

    def may_be_replaced(self, written: Written, offset: int, by: int) -> bool:
        """Tell whether a record at an offset had a newer one of its key before an event."""
        if written.record.tombstone or written.record.key is None:
            return True
        log = self.log(written.partition)
        newer = log.of_key.get(written.record.key, ())
        return any(self._is_asked(value, by) for at, value in newer if at > offset)

    def _is_asked(self, value: str, by: int) -> bool:
        """Tell whether the commit of a record was asked for before an event."""
        written = self.written[value]
        transaction = self.transaction_of(written)
        asked = written.call.invoked if transaction is None else transaction.commit_invoked
        return asked is None or asked < by

    def has_ended_below(self, written: Written) -> bool:
        """Tell whether the final reading would show the record, were it there and committed."""
        final = self.finals.get(written.partition)
        if final is None:
            return False
        is_stable = final.last_stable_offset >= final.high_watermark
        return is_stable or (written.offset or 0) < final.last_stable_offset

    def violation(self, rule: Rule, what: str, *calls: int | Call[Any, Any]) -> Violation:
        """Report a broken rule, with the lines of the operations concerned."""
        ops = sorted({call if isinstance(call, int) else call.op for call in calls})
        found = [call for call in calls if not isinstance(call, int)]
        indexes = {i for call in found for i in (call.invoked, call.returned)}
        events = [self.history[i] for i in sorted(indexes) if i < len(self.history)]
        lines = tuple(
            line if len(line) <= EXCERPT_LINE_MAX else line[:EXCERPT_LINE_MAX] + "…"
            for line in to_lines(events[:EXCERPT_LINES_MAX])
        )
        return Violation(rule=rule, what=what, ops=tuple(ops), excerpt=lines)


def gather(history: History) -> Facts:
    """Fill all tables."""
    calls = join_calls(history)
    observations = [
        (index, event.what)
        for index, event in enumerate(history)
        if not isinstance(event.what, Invoked | Returned)
    ]
    seen = [observation for _, observation in observations]
    told = (each for each in seen if isinstance(each, FinalTransaction))
    finals = {each.partition: each for each in seen if isinstance(each, FinalPartition)}
    readings = [
        Reading(call, read)
        for call in sorted(calls.of(Poll, Polled), key=lambda call: call.returned)
        if call.result is not None
        for read in call.result.reads
    ]
    facts = Facts(
        history=history,
        observations=observations,
        calls=calls,
        transactions=gather_transactions(calls, told),
        written=_written(calls),
        readings=readings,
        finals=finals,
        topics={each.topic: each for each in seen if isinstance(each, TopicMade)},
        logs={},
        sightings=_sightings(readings),
        deleted_below=_deleted_below(calls),
        visible=set(),
        states={},
        _final_offsets={
            partition: {value: offset for offset, value in final.committed}
            for partition, final in finals.items()
        },
    )
    _fill_logs(facts)
    for log in facts.logs.values():
        facts.visible.update(log.visible.values())
    _fill_states(facts)
    _fill_keys(facts)
    return facts


def _fill_states(facts: Facts) -> None:
    transactions = facts.transactions
    for value in facts.visible & facts.written.keys():
        written = facts.written[value]
        if written.transactional:
            transactions.of(written.writer).seen.add(written.writer)
    by_writer: dict[Writer, TransactionState | None] = {}
    for value, written in facts.written.items():
        outcome, writer = written.call.outcome, written.writer
        if outcome is Outcome.FAILED:
            facts.states[value] = TransactionState.ABORTED
        elif written.transactional:
            if writer not in by_writer:
                by_writer[writer] = transactions.state_of(writer)
            facts.states[value] = by_writer[writer]
        else:
            is_there = outcome is Outcome.OK or value in facts.visible
            facts.states[value] = TransactionState.COMMITTED if is_there else None


def _fill_keys(facts: Facts) -> None:
    for log in facts.logs.values():
        for offset in log.offsets:
            for value in sorted(log.values[offset]):
                _add_key(facts, log, value, offset)
    for value, written in facts.written.items():
        # Compaction may have taken a tombstone of unknown offset that no reader has seen.
        if written.offset is None and written.record.tombstone:
            _add_key(facts, facts.log(written.partition), value, UNKNOWN_OFFSET)


def _add_key(facts: Facts, log: PartitionLog, value: str, offset: int) -> None:
    written = facts.written.get(value)
    if written is None or written.record.key is None:
        return
    if facts.states[value] is not TransactionState.ABORTED:
        log.of_key.setdefault(written.record.key, []).append((offset, value))


def _written(calls: Calls) -> dict[str, Written]:
    found: dict[str, Written] = {}
    for call in calls.of(Send, Sent):
        base = call.result.base_offset if call.result is not None else None
        for position, record in enumerate(call.operation.records):
            if record.value in found:
                raise ValueError(f"{record.value} is sent by two operations: values are unique")
            offset = None if base is None else base + position
            found[record.value] = Written(record, call.operation.partition, offset, call)
    return found


def _sightings(readings: Iterable[Reading]) -> dict[str, int]:
    found: dict[str, int] = {}
    for reading in readings:
        if reading.committed:
            for _, value in reading.read.records:
                found.setdefault(value, reading.call.returned)
    return found


def _deleted_below(calls: Calls) -> dict[Partition, int]:
    found: dict[Partition, int] = {}
    for call in calls.without_result(DeleteRecords):
        if call.outcome is not Outcome.FAILED:
            partition = call.operation.partition
            found[partition] = max(found.get(partition, 0), call.operation.before_offset)
    return found


def _fill_logs(facts: Facts) -> None:
    for written in facts.written.values():
        if written.offset is not None and written.call.outcome is Outcome.OK:
            _add(facts, written.partition, written.offset, written.record.value)
    for reading in facts.readings:
        for record in reading.read.records:
            _add(facts, reading.read.partition, *record, visible=reading.committed)
    for final in facts.finals.values():
        for record in final.committed:
            _add(facts, final.partition, *record, visible=True)
        for stored in final.uncommitted or ():
            _add(facts, final.partition, stored.offset, stored.value)
    _sort_logs(facts)


def _sort_logs(facts: Facts) -> None:
    for log in facts.logs.values():
        log.offsets = sorted(log.values)
        log.visible_offsets = sorted(log.visible)


def _add(
    facts: Facts, partition: Partition, offset: int, value: str, *, visible: bool = False
) -> None:
    log = facts.logs.setdefault(partition, PartitionLog())
    log.values.setdefault(offset, set()).add(value)
    if visible:
        log.visible[offset] = value


def within(offsets: list[int], start: int, end: int) -> list[int]:
    """Return those of ordered offsets that are in [start, end)."""
    return offsets[bisect_left(offsets, start) : bisect_left(offsets, end)]
