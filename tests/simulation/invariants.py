"""The invariants of the state in memory and of the records on disk, checked after every step.

The checks see every record twice: when it is replayed, with the state it made, and when it is
durable. The records that were durable before a crash must be there after it, and a machine that is
made from a journal must equal the one that wrote it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from semel_broker.journal.record_serde import BrokerSerde
from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import (
    BatchAppended,
    LogCompacted,
    LogStartMoved,
    MarkerAppended,
    ProducerFenced,
    ProducerForgotten,
)
from semel_common.ids import NO_PRODUCER_ID
from semel_coordinator.coordinator_machine import CoordinatorMachine
from semel_coordinator.record_serde import CoordinatorSerde
from semel_coordinator.transactions.machine.state.entities import (
    DecidedTransaction,
    PreparedTransaction,
    Producer,
)
from semel_coordinator.transactions.machine.state.records import TransactionalIdExpired
from semel_coordinator.transactions.machine.state.transitions import AbortReason, TransactionState
from semel_group.journal import GroupSerde
from semel_group.machine import GroupMachine
from semel_group.machine.records import (
    ConsumerGroup,
    Member,
    MemberRemoved,
    TransactionEnded,
    TransactionNeverGiven,
    TxnOffsetsCommitted,
)
from semel_local.layout import Role, ServiceName
from semel_runtime.clock import Clock
from semel_runtime.journal.contract import StoredBatch
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochSeen
from simulation.compaction import CompactionWatch
from simulation.disk import SimulatedVolume
from simulation.durable import Durable, JointFact, Transaction
from simulation.group_moves import GroupMovesWatch
from simulation.log_moves import LogMovesWatch
from simulation.moves import Moves, Place
from simulation.normal import normal
from simulation.principals import compare_principals
from simulation.world import Life


class InvariantError(AssertionError):
    """Something is so that must never be."""


class Invariants:
    """The watch over all services."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self.decided: dict[Transaction, bool] = {}
        """Whether a transaction commits, by the durable decision of its coordinator."""
        self.prepared: dict[Transaction, PreparedTransaction] = {}
        """The prepared transactions, each with its owner, over all time."""
        self._durable: dict[str, Durable] = {}
        self._places: dict[str, Place] = {}
        self.moves = Moves(self._places)
        self.group_moves = GroupMovesWatch()
        self.log_moves = LogMovesWatch()
        self._watches: dict[Life, Watch] = {}
        self.checked = 0

    def watch(
        self, name: ServiceName, life: Life, volume: SimulatedVolume, clock: Clock
    ) -> "Watch":
        """Begin to watch a life."""
        made: dict[Role, Callable[[], Durable]] = {
            Role.GROUP_COORDINATOR: self.group_moves.durable,
            Role.COORDINATOR: self.log_moves.durable,
        }
        durable = self._durable.setdefault(str(name), made.get(name.role, Durable)())
        self._places[str(name)] = Place(durable, volume)
        watch = self._watches[life] = Watch(self, name, durable, volume, clock)
        return watch

    def durable(self, name: str) -> Durable:
        """Return the facts in a service's journal so far."""
        return self._durable[name]

    def owns_disk(self, life: Life) -> bool:
        """Whether no other process has taken a life's place."""
        watch = self._watches.get(life)
        return watch is not None and watch.owns_disk

    def compaction_of(self, life: Life) -> CompactionWatch | None:
        """Return the watch of a life's compaction; None: it has no watch."""
        return self._watches[life].compaction if life in self._watches else None

    def died(self, life: Life) -> None:
        """Forget a life."""
        self._watches.pop(life, None)

    def check(self, holds: bool, what: str) -> None:
        """Note a violation."""
        self.checked += 1
        if not holds:
            self.violations.append(what)
            raise InvariantError(what)

    def note(self, holds: bool, what: str) -> None:
        """Note a violation, and let everything go on until it is seen."""
        self.checked += 1
        if not holds:
            self.violations.append(what)

    def compare_all(self) -> None:
        """Compare every living machine with its journal, where nothing waits for the disk."""
        for watch in self._watches.values():
            watch.compare()


class Watch:
    """The watch over one life of one service."""

    def __init__(
        self,
        owner: Invariants,
        name: ServiceName,
        durable: Durable,
        volume: SimulatedVolume,
        clock: Clock,
    ) -> None:
        self._owner = owner
        self._name = name
        self._durable = durable
        self._volume = volume
        self.compaction = CompactionWatch(durable.ended, durable.stable, clock)
        self._waiting: dict[int, object] = {}
        self._loading = True
        self._epoch = 0
        self._machine: Any = None
        self._claimed: set[int] = set()
        """Transaction-log partitions that are served in this life."""
        self._positions_seen: dict[tuple[str, object], int] = {}
        self._make: Callable[[], Any] | None = None
        self._serde: Any = None

    @property
    def owns_disk(self) -> bool:
        """Whether no other process has claimed the journal since."""
        return bool(self._epoch == self._volume.epoch)

    def observe(self, app: Any) -> None:  # noqa: ANN401 - of three kinds
        """See every record that its machine replays."""
        machine = self._machine = app._machine
        replay = machine.replay

        def observed(offset: int, record: object) -> None:
            replay(offset, record)
            if not self._loading:
                self._waiting[offset] = record
                self._after(record)

        machine.replay = observed
        settings = app._settings
        match self._name.role:
            case Role.BROKER:
                self._make = lambda: BrokerMachine(settings.instance_id, settings.log_limits())
                self._serde = BrokerSerde()
            case Role.COORDINATOR:
                self._make = lambda: CoordinatorMachine(
                    instance_id=settings.instance_id,
                    controller_limits=settings.controller_limits(),
                    transaction_limits=settings.transaction_limits(),
                )
                self._serde = CoordinatorSerde()
            case Role.GROUP_COORDINATOR:
                self._make = lambda: GroupMachine(settings.instance_id, settings.group_limits())
                self._serde = GroupSerde()

    def loaded(self) -> None:
        """Be told that the journal is replayed: nothing durable may be missing."""
        self._loading = False
        self._epoch = self._volume.epoch
        end = self._volume.next_offset
        self._check(end >= self._durable.next_offset, "the journal has become shorter")

    def appended(self, at: int, records: int) -> None:
        """Be told that records are durable."""
        self._durable.next_offset = at + records
        for offset in range(at, at + records):
            record = self._waiting.pop(offset, None)
            if record is not None:
                self._on_durable(record)

    def rewritten(
        self, partition: int, before: Sequence[StoredBatch], after: Sequence[StoredBatch]
    ) -> None:
        """Be told that compaction has changed a log."""
        self.compaction.rewritten(self._machine, partition, before, after, self._check)

    def broken(self, what: str) -> None:
        """Be told that the journal has broken its promise."""
        self._check(False, what)

    def compare(self) -> None:
        """Replay the journal into an empty machine, and compare it with the one that lives."""
        if self._waiting or self._loading or self._make is None:
            return
        if not self.owns_disk:
            return  # It lingers: another process has taken its place.
        fresh = self._make()
        for offset, data in self._volume.entries():
            fresh.replay(offset, self._serde.decode(data))
        live = sorted(repr(normal(record)) for _, record in self._machine.snapshot())
        replayed = sorted(repr(normal(record)) for _, record in fresh.snapshot())
        if live != replayed:
            only_live = [each for each in live if each not in replayed][:3]
            only_replayed = [each for each in replayed if each not in live][:3]
            self._check(False, f"live state is not its journal: {only_live} {only_replayed}")
        if isinstance(self._machine, CoordinatorMachine):
            compare_principals(self._machine.transactions._state, self._check)
        self._owner.checked += 1

    # -- the state in memory ---------------------------------------------------------------------

    def _after(self, record: object) -> None:
        if isinstance(record, (BatchAppended, MarkerAppended)):
            log = self._machine._logs.log(record.log_id)
            stable, end = log.last_stable_offset, log.log_end_offset
            self._check(stable <= end, f"LSO {stable} > end {end}")
            state = log.producers.get(record.producer_id)
            if state is not None:
                once = len(set(state.open_epochs)) == len(state.open_epochs)
                self._check(once, f"a transaction is open twice: {state}")
            if isinstance(record, MarkerAppended):
                key = (record.producer_id, record.producer_epoch)
                self._check(key not in log.open_transactions, f"{key} is open after its marker")
        self._owner.group_moves.replayed(self._name, self._machine, record, self._check)
        self._owner.log_moves.replayed(self._name, self._machine, record, self._check)
        if isinstance(record, TransactionEnded):
            self._positions(record.group_id)
        if isinstance(record, (ConsumerGroup, Member)):
            self._membership(record.group_id)

    def _positions(self, group_id: str) -> None:
        """Check that no offset of a group gave way to one that was written before it."""
        for partition, (position, _) in self._machine.offsets.group(group_id).committed.items():
            before = self._positions_seen.get((group_id, partition), -1)
            self._check(position >= before, f"{group_id} went back in {partition}")
            self._positions_seen[group_id, partition] = position

    def _membership(self, group_id: str) -> None:
        """Check that a group shares its partitions out: each is to go to one member, and does."""
        state = self._machine.membership.groups[group_id]
        target = sorted(each for share in state.group.target.values() for each in share)
        wanted = [
            (topic_id, partition)
            for topic_id, count in sorted(state.group.topics.items())
            for partition in range(count)
        ]
        if state.group.target:
            self._check(target == wanted, f"the target of {group_id} is {state.group}")
        for member in state.members.values():
            known = not member.is_away or not member.held
            self._check(known, f"{member} is away, and holds partitions")

    # -- the disk --------------------------------------------------------------------------------

    def _on_durable(self, record: object) -> None:
        self._owner.moves.on_durable(self._name, record, self._check)
        match record:
            case BatchAppended():
                self._batch(record)
            case MarkerAppended():
                self._marker(record)
            case ProducerFenced():
                self._durable.fence(record.log_id, record.producer_id, record.fence)
            case ProducerForgotten():
                for wrong in self._durable.forget(record.log_id, record.producer_id):
                    self._check(False, wrong)
            case LogStartMoved():
                self._log_start(record)
            case LogCompacted():
                batches = self._volume.batches_of(record.log_id)
                self.compaction.compacted(record, batches, self._check)
            case _:
                self._on_durable_at_group_coordinator(record)

    def _on_durable_at_group_coordinator(self, record: object) -> None:
        if self._owner.group_moves.is_copy(self._name, record):
            return
        match record:
            case TxnOffsetsCommitted():
                self._offsets(record)
            case TransactionEnded():
                self._outcome(
                    record.group_id, record.producer_id, record.producer_epoch, record.committed
                )
                self._durable.fence(record.group_id, record.producer_id, record.producer_epoch + 1)
                self._close(record)
            case TransactionNeverGiven():
                self._close(record)
                self._durable.go_back(record.group_id, record.producer_id, record.current_epoch)
            case Member():
                held = frozenset(record.held)
                self._durable.held[record.group_id, record.member_id] = held
            case MemberRemoved():
                self._durable.held.pop((record.group_id, record.member_id), None)
            case ConsumerGroup():
                before = self._durable.group_epochs.get(record.group_id, 0)
                self._check(record.group_epoch >= before, f"{record} after epoch {before}")
                self._durable.group_epochs[record.group_id] = record.group_epoch
            case _:
                self._on_durable_at_coordinator(record)

    def _on_durable_at_coordinator(self, record: object) -> None:
        if self._owner.log_moves.is_copy(self._name, record):
            return
        self._owner.log_moves.on_durable(self._claimed, record, self._check)
        match record:
            case DecidedTransaction():
                self._decision(record)
            case PreparedTransaction():
                self._check(record.key not in self._owner.decided, f"{record} after its decision")
                self._owner.prepared[record.key] = record
            case Producer():
                self._producer(record)
            case TransactionalIdExpired():
                self._durable.epochs.pop(record.producer_id, None)
            case _ if isinstance(record, JointFact):
                for wrong in self._durable.joint(record):
                    self._check(False, wrong)
            case CoordinatorEpochSeen():
                heard = self._durable.coordinators_heard
                heard[record.transaction_log_partition] = record.coordinator_epoch
            case _:
                pass

    def _producer(self, record: Producer) -> None:
        before = self._durable.epochs.get(record.producer_id, 0)
        text = f"epoch of {record.producer_id} went from {before} to {record.producer_epoch}"
        self._check(record.producer_epoch >= before, text)
        self._durable.epochs[record.producer_id] = record.producer_epoch

    def _batch(self, record: BatchAppended) -> None:
        durable = self._durable
        end = durable.log_ends.get(record.log_id, 0)
        self._check(record.base_offset == end, f"log {record.log_id} ends at {end}: {record}")
        durable.log_ends[record.log_id] = end + record.record_count
        if record.producer_id != NO_PRODUCER_ID:
            self._sequence(
                record.log_id,
                (record.producer_id, record.producer_epoch),
                record.base_sequence,
                count=record.record_count,
            )
        if record.transactional:
            key = (record.log_id, (record.producer_id, record.producer_epoch))
            self._check(key not in durable.ended, f"{record} after the marker of its transaction")
            durable.open.setdefault(key, record.base_offset)
        self._see_stable(record.log_id)

    def _marker(self, record: MarkerAppended) -> None:
        durable = self._durable
        end = durable.log_ends.get(record.log_id, 0)
        self._check(record.offset == end, f"log {record.log_id} ends at {end}: {record}")
        durable.log_ends[record.log_id] = end + 1
        producer_id, epoch = record.producer_id, record.producer_epoch
        if record.current_epoch is None:
            self._outcome(record.log_id, producer_id, epoch, record.committed)
            self._durable.fence(record.log_id, producer_id, epoch + 1)
        else:
            # Closed, but not ended: a client that makes epochs up may make this one up again.
            durable.open.pop((record.log_id, (producer_id, epoch)), None)
            self._durable.go_back(record.log_id, producer_id, record.current_epoch)
        self._see_stable(record.log_id)

    def _log_start(self, record: LogStartMoved) -> None:
        durable, start = self._durable, record.log_start_offset
        before = durable.log_starts.get(record.log_id, 0)
        self._check(start > before, f"start of log {record.log_id} went from {before} to {start}")
        stable = durable.stable.get(record.log_id, 0)
        self._check(start <= stable, f"log {record.log_id} starts at {start}, its LSO is {stable}")
        durable.log_starts[record.log_id] = start

    def _offsets(self, record: TxnOffsetsCommitted) -> None:
        transaction = (record.producer_id, record.producer_epoch)
        key = (record.group_id, transaction)
        self._check(key not in self._durable.ended, f"offsets of {key}, which has ended")
        self._durable.open.setdefault(key, 0)
        moved = self._durable.pending.setdefault(key, set())
        moved.update(offset.partition for offset in record.offsets)
        self._sequence(record.group_id, transaction, record.base_sequence, count=1)

    def _close(self, record: TransactionEnded | TransactionNeverGiven) -> None:
        key = (record.group_id, (record.producer_id, record.producer_epoch))
        self._durable.pending.pop(key, None)

    def _sequence(
        self, log: object, transaction: Transaction, sequence: int, *, count: int
    ) -> None:
        for problem in self._durable.wrote(log, transaction, sequence, count):
            self._check(False, problem)

    def _outcome(
        self,
        log: object,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
    ) -> None:
        transaction = (producer_id, producer_epoch)
        durable = self._durable
        durable.open.pop((log, transaction), None)
        before = durable.ended.setdefault((log, transaction), committed)
        self._check(before == committed, f"{transaction} ended twice in {log}, differently")
        decided = self._owner.decided.get(transaction)
        if committed:
            self._check(decided is True, f"{transaction} is committed in {log}: {decided}")

    def _decision(self, record: DecidedTransaction) -> None:
        key = (record.producer_id, record.producer_epoch)
        committed = record.state is TransactionState.PREPARE_COMMIT
        if committed and record.aborting and not record.committing:
            committed = False  # It names no participant: its records abort.
        before = self._owner.decided.setdefault(key, committed)
        self._check(before == committed, f"{key} was decided twice, differently")
        prepared = self._owner.prepared.get(key)
        if prepared is not None:
            promised = prepared.committing if committed else prepared.participants
            kept = promised <= (record.committing if committed else record.aborting)
            self._check(kept, f"{record} forgets some of {prepared}")
            self._check(record.reason is not AbortReason.TIMED_OUT, f"{prepared} has timed out")

    def _see_stable(self, log_id: int) -> None:
        durable = self._durable
        first = [offset for (log, _), offset in durable.open.items() if log == log_id]
        stable = min(first, default=durable.log_ends[log_id])
        before = durable.stable.get(log_id, 0)
        self._check(stable >= before, f"LSO of log {log_id} went from {before} to {stable}")
        durable.stable[log_id] = stable

    def _check(self, holds: bool, what: str) -> None:
        self._owner.check(holds, f"{self._name}: {what}")
