"""A tiny cluster that is right by construction, and records its clients' operations.

Everything takes effect in one step, so its histories are those of a correct system. Decisions and
markers are apart, as in the protocol: a commit is answered before its markers are written, and
`deliver` writes one. With `delay`, answers stay out until `answer`.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from semel_checker.history import Event, Recorder
from semel_checker.names import AbortReason, Isolation, Joint, Outcome, Partition, Writer
from semel_checker.names import TransactionState as State
from semel_checker.observations import (
    AbortedRange,
    Assigned,
    FinalGroup,
    FinalPartition,
    FinalTransaction,
    Observation,
    Positioned,
    RunStarted,
    StoredMarker,
    StoredRecord,
    TopicMade,
)
from semel_checker.operations import (
    AskOutcome,
    CommitOffsets,
    DeleteRecords,
    EndJoint,
    EndTransaction,
    FetchOffsets,
    GroupOffset,
    Initialized,
    InitProducer,
    Joined,
    JointEnded,
    JoinTransaction,
    LogProbed,
    OffsetCommit,
    OffsetsFetched,
    Operation,
    OutcomeTold,
    PartitionRead,
    Poll,
    Polled,
    PolledRecord,
    PrepareTransaction,
    ProbeLog,
    Result,
    Send,
    Sent,
    SentRecord,
)

OK, FAILED, UNKNOWN = Outcome.OK, Outcome.FAILED, Outcome.UNKNOWN
COMMITTED, ABORTED = State.COMMITTED, State.ABORTED
P0, P1 = Partition("orders", 0), Partition("orders", 1)
OUT = Partition("income", 0)
TABLE = Partition("table", 0)
GROUP = "billing"


class Entry(NamedTuple):
    """One offset of a log."""

    writer: Writer
    record: SentRecord | None
    """None: a marker."""
    transactional: bool = True
    commit: bool = False
    is_gone: bool = False


class Due(NamedTuple):
    """A marker on its way."""

    writer: Writer
    place: Partition | str
    commit: bool


@dataclass(slots=True)
class Cluster:
    """Logs, groups and transactions."""

    recorder: Recorder = field(init=False)
    logs: dict[Partition, list[Entry]] = field(default_factory=dict)
    starts: dict[Partition, int] = field(default_factory=dict)
    states: dict[Writer, State] = field(default_factory=dict)
    reasons: dict[Writer, AbortReason] = field(default_factory=dict)
    epochs: dict[str, Writer] = field(default_factory=dict)
    offsets: dict[tuple[str, Partition], int] = field(default_factory=dict)
    pending: dict[Writer, list[CommitOffsets]] = field(default_factory=dict)
    positions: dict[tuple[str, Partition], int] = field(default_factory=dict)
    due: list[Due] = field(default_factory=list)
    delayed: list[tuple[str, int, Outcome, Result | None]] = field(default_factory=list)
    delay: bool = False
    now_ms: int = 0

    def __post_init__(self) -> None:
        self.recorder = Recorder(self._tick)
        self.observe(
            RunStarted(name="a test", transaction_timeout_ms=1000, slack_ms=100, progress_ms=1000)
        )
        for partition in (P0, P1, OUT, TABLE):
            self.logs[partition] = []
        self.observe(TopicMade(topic="orders", partitions=2, retention=True))
        self.observe(TopicMade(topic="income", partitions=1))
        self.observe(TopicMade(topic="table", partitions=1, compacted=True))

    @property
    def events(self) -> list[Event]:
        return self.recorder.events

    def _tick(self) -> int:
        self.now_ms += 1
        return self.now_ms

    def observe(self, observation: Observation) -> None:
        self.recorder.observed("harness", observation)

    def call(
        self,
        process: str,
        operation: Operation,
        outcome: Outcome = OK,
        result: Result | None = None,
    ) -> None:
        """Record an operation that takes effect now."""
        op = self.recorder.invoked(process, operation)
        self.delayed.append((process, op, outcome, result))
        if not self.delay:
            self.answer()

    def answer(self, process: str | None = None) -> None:
        """Let the delayed answers, of one process or all, arrive."""
        mine = [each for each in self.delayed if process in (None, each[0])]
        self.delayed = [each for each in self.delayed if each not in mine]
        for name, op, outcome, result in mine:
            self.recorder.returned(name, op, outcome, result)

    # --- Producers ---

    def init(self, process: str, *, keep_prepared: bool = False) -> Writer:
        """Give a process its next epoch; its name is its transactional id too."""
        self.answer(process)
        name = process.partition("'")[0]
        old = self.epochs.get(name, Writer(len(self.epochs) + 1, -1))
        for writer, state in self.states.items():
            if writer.producer_id == old.producer_id:
                is_kept = keep_prepared and state is State.PREPARED
                if state in (State.ONGOING, State.PREPARED) and not is_kept:
                    self._decide(writer, commit=False, reason=AbortReason.FENCED)
        writer = self._next(name, old)
        operation = InitProducer(transactional_id=name, keep_prepared=keep_prepared)
        self.call(process, operation, OK, Initialized(writer=writer))
        self.answer(process)
        return writer

    def _next(self, name: str, old: Writer) -> Writer:
        writer = Writer(old.producer_id, old.producer_epoch + 1)
        self.epochs[name] = writer
        self.states[writer] = State.ONGOING
        return writer

    def send(
        self,
        process: str,
        writer: Writer,
        partition: Partition,
        *records: str | SentRecord,
        outcome: Outcome = OK,
        transactional: bool = True,
    ) -> None:
        """Store records, unless the outcome is FAILED."""
        sent = tuple(SentRecord(each) if isinstance(each, str) else each for each in records)
        log = self.logs[partition]
        base = len(log)
        if outcome is not FAILED:
            log.extend(Entry(writer, record, transactional) for record in sent)
        operation = Send(
            writer=writer, partition=partition, records=sent, transactional=transactional
        )
        self.call(process, operation, outcome, Sent(base_offset=base) if outcome is OK else None)

    def commit(self, process: str, writer: Writer, outcome: Outcome = OK) -> Writer:
        """Commit, and return the next epoch; an UNKNOWN commit takes effect, too."""
        return self._end(process, writer, outcome, commit=True)

    def abort(self, process: str, writer: Writer, outcome: Outcome = OK) -> Writer:
        return self._end(process, writer, outcome, commit=False)

    def _end(self, process: str, writer: Writer, outcome: Outcome, *, commit: bool) -> Writer:
        self.answer(process)
        self._decide(writer, commit=commit, reason=AbortReason.CLIENT)
        self.call(process, EndTransaction(writer=writer, commit=commit), outcome)
        return self._next(process.partition("'")[0], writer)

    def lose_commit(self, process: str, writer: Writer) -> Writer:
        """Lose the request of a commit, which times out; a successor fences it."""
        self.answer(process)
        self.call(process, EndTransaction(writer=writer, commit=True), UNKNOWN)
        return self.init(process)

    def refuse_commit(self, process: str, writer: Writer) -> Writer:
        """Let a transaction time out, so that its commit is refused."""
        self.answer(process)
        self._decide(writer, commit=False, reason=AbortReason.TIMED_OUT)
        self.call(process, EndTransaction(writer=writer, commit=True), FAILED)
        return self.init(process)

    def prepare(self, process: str, writer: Writer) -> None:
        self.states[writer] = State.PREPARED
        self.call(process, PrepareTransaction(writer=writer))

    def complete(self, process: str, prepared: Writer, successor: Writer, *, commit: bool) -> None:
        self._decide(prepared, commit=commit, reason=AbortReason.CLIENT)
        self.call(process, EndTransaction(writer=prepared, commit=commit, successor=successor))

    def ask(self, process: str, writer: Writer) -> None:
        told = OutcomeTold(state=self.states[writer], reason=self.reasons.get(writer))
        self.call(process, AskOutcome(writer=writer), OK, told)

    def _decide(self, writer: Writer, *, commit: bool, reason: AbortReason) -> None:
        self.states[writer] = COMMITTED if commit else ABORTED
        if not commit:
            self.reasons[writer] = reason
        self.due += [Due(writer, place, commit) for place in self._participants(writer)]

    def _participants(self, writer: Writer) -> list[Partition | str]:
        found: list[Partition | str] = [
            partition
            for partition, log in self.logs.items()
            if any(entry.writer == writer and entry.transactional for entry in log)
        ]
        return found + sorted({each.group for each in self.pending.get(writer, [])})

    def deliver(self, number: int = 0) -> None:
        """Write one of the markers that are due."""
        writer, place, commit = self.due.pop(number % len(self.due))
        if isinstance(place, Partition):
            self.logs[place].append(Entry(writer, None, commit=commit))
            return
        for asked in self.pending.pop(writer, []):
            for offset in asked.offsets if commit else ():
                self.offsets[asked.group, offset.partition] = offset.offset

    def deliver_all(self) -> None:
        while self.due:
            self.deliver()

    # --- Joint transactions ---

    def join(self, process: str, joint: Joint) -> Writer:
        writer = self._next(f"{joint}/{process}", Writer(1000 + len(self.states), 6))
        operation = JoinTransaction(joint=joint, owner="job", writer_name=process)
        self.call(process, operation, OK, Joined(writer=writer))
        return writer

    def end_joint(self, joint: Joint, writers: list[Writer], *winners: Writer) -> None:
        self.answer()
        for writer in writers:
            self._decide(writer, commit=writer in winners, reason=AbortReason.CLIENT)
        operation = EndJoint(joint=joint, owner="job", commit=True, writers=winners)
        self.call("driver", operation, OK, JointEnded())

    # --- Readers ---

    def stable(self, partition: Partition) -> int:
        """Return the last stable offset."""
        log = self.logs[partition]
        closed = {entry.writer for entry in log if entry.record is None}
        return next(
            (o for o, e in enumerate(log) if e.transactional and e.writer not in closed), len(log)
        )

    def read(
        self, partition: Partition, start: int, end: int, isolation: Isolation
    ) -> tuple[PolledRecord, ...]:
        return tuple(
            PolledRecord(offset, entry.record.value)
            for offset, entry in enumerate(self.logs[partition][:end])
            if offset >= start
            and entry.record is not None
            and not entry.is_gone
            and (isolation is Isolation.READ_UNCOMMITTED or self._is_visible(entry))
        )

    def _is_visible(self, entry: Entry) -> bool:
        return not entry.transactional or self.states[entry.writer] is COMMITTED

    def assign(self, consumer: str, *partitions: Partition) -> None:
        self.observe(
            Assigned(
                consumer=consumer,
                group=GROUP,
                member=consumer,
                member_epoch=len(self.events),
                partitions=partitions,
            )
        )
        offsets = [GroupOffset(each, self.offsets.get((GROUP, each), 0)) for each in partitions]
        self.seek(consumer, *offsets)

    def seek(self, consumer: str, *offsets: GroupOffset) -> None:
        for partition, offset in offsets:
            self.positions[consumer, partition] = offset or 0
        self.observe(Positioned(consumer=consumer, positions=offsets))

    def poll(
        self,
        consumer: str,
        *partitions: Partition,
        isolation: Isolation = Isolation.READ_COMMITTED,
        transaction: Writer | None = None,
        limit: int | None = None,
    ) -> list[tuple[Partition, PolledRecord]]:
        reads = [self._read_on(consumer, partition, isolation, limit) for partition in partitions]
        operation = Poll(consumer=consumer, isolation=isolation, transaction=transaction)
        self.answer(consumer)
        self.call(consumer, operation, OK, Polled(reads=tuple(reads)))
        return [(read.partition, record) for read in reads for record in read.records]

    def _read_on(
        self, consumer: str, partition: Partition, isolation: Isolation, limit: int | None
    ) -> PartitionRead:
        position = self.positions.get((consumer, partition), 0)
        is_committed = isolation is Isolation.READ_COMMITTED
        end = self.stable(partition) if is_committed else len(self.logs[partition])
        position = max(position, self.starts.get(partition, 0))
        records = self.read(partition, position, end, isolation)
        if limit is not None and len(records) > limit:
            records = records[:limit]
            end = records[-1].offset + 1
        next_position = max(position, end)
        self.positions[consumer, partition] = next_position
        return PartitionRead(
            partition=partition, position=position, next_position=next_position, records=records
        )

    def probe(self, partition: Partition) -> None:
        probed = LogProbed(
            log_start_offset=self.starts.get(partition, 0),
            last_stable_offset=self.stable(partition),
            high_watermark=len(self.logs[partition]),
        )
        self.call("probe", ProbeLog(partition=partition), OK, probed)

    # --- Groups ---

    def commit_offsets(
        self, process: str, writer: Writer, partition: Partition, start: int, end: int
    ) -> None:
        """Add offsets to a transaction."""
        offsets = (OffsetCommit(partition, end, start),)
        operation = CommitOffsets(group=GROUP, offsets=offsets, writer=writer)
        self.pending.setdefault(writer, []).append(operation)
        self.call(process, operation)

    def fetch_offsets(self, process: str, partition: Partition) -> None:
        """Ask for a stable offset, once nothing is pending."""
        if self.pending:
            return
        told = (GroupOffset(partition, self.offsets.get((GROUP, partition))),)
        operation = FetchOffsets(group=GROUP, partitions=(partition,))
        self.call(process, operation, OK, OffsetsFetched(offsets=told))

    # --- Logs ---

    def compact(self, partition: Partition = TABLE) -> None:
        """Below the LSO, take away aborted records, and keep the last record of each key."""
        end = self.stable(partition)
        log = self.logs[partition]
        last = {
            entry.record.key: offset
            for offset, entry in enumerate(log[:end])
            if entry.record is not None and self._is_visible(entry)
        }
        for offset, entry in enumerate(log[:end]):
            if entry.record is not None and last.get(entry.record.key) != offset:
                log[offset] = entry._replace(is_gone=True)

    def delete_records(self, partition: Partition, before: int) -> None:
        before = min(before, self.stable(partition))
        self.starts[partition] = max(before, self.starts.get(partition, 0))
        for offset in range(before):
            self.logs[partition][offset] = self.logs[partition][offset]._replace(is_gone=True)
        self.call("operator", DeleteRecords(partition=partition, before_offset=before))

    # --- The end ---

    def finish(self) -> list[Event]:
        """Let everything settle, read it all, and return the history."""
        self.answer()
        for writer, state in list(self.states.items()):
            if state is State.ONGOING and self._participants(writer):
                self._decide(writer, commit=False, reason=AbortReason.TIMED_OUT)
        self.deliver_all()
        for partition in self.logs:
            self.observe(self._final(partition))
        prepared = tuple(w for w, s in self.states.items() if s is State.PREPARED)
        offsets = tuple(GroupOffset(p, o) for (_, p), o in sorted(self.offsets.items()))
        self.observe(FinalGroup(group=GROUP, offsets=offsets))
        for writer, state in self.states.items():
            if state in (COMMITTED, ABORTED) or writer in prepared:
                places = [
                    each for each in self._participants(writer) if isinstance(each, Partition)
                ]
                self.observe(
                    FinalTransaction(
                        writer=writer,
                        state=state,
                        reason=self.reasons.get(writer),
                        partitions=tuple(places),
                    )
                )
        return self.events

    def _final(self, partition: Partition) -> FinalPartition:
        log, end = self.logs[partition], len(self.logs[partition])
        markers = [
            StoredMarker(o, e.writer, e.commit) for o, e in enumerate(log) if e.record is None
        ]
        first: dict[Writer, int] = {}
        for offset, entry in enumerate(log):
            if entry.record is not None and entry.transactional:
                first.setdefault(entry.writer, offset)
        stored = (
            StoredRecord(offset, entry.record.value, entry.writer)
            for offset, entry in enumerate(log)
            if entry.record is not None and not entry.is_gone
        )
        aborted = (
            AbortedRange(m.writer, first[m.writer], m.offset) for m in markers if not m.commit
        )
        stable = self.stable(partition)
        return FinalPartition(
            partition=partition,
            log_start_offset=self.starts.get(partition, 0),
            last_stable_offset=stable,
            high_watermark=end,
            committed=self.read(partition, 0, stable, Isolation.READ_COMMITTED),
            uncommitted=tuple(stored),
            markers=tuple(markers),
            aborted=tuple(aborted),
        )
