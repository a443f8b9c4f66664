"""What the transaction coordinator knows: records in, indexes out. Nothing else changes it.

Every look-up that a request needs is one or two dictionary accesses, however many transactional
ids and transactions there are.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import assert_never

from msgspec.structs import replace

from semel_common.ids import (
    Participant,
    producer_id_counters_start,
    transaction_log_partition_of,
)
from semel_coordinator.transactions.machine.history.audit_trail import AuditNoted, AuditTrail
from semel_coordinator.transactions.machine.history.rings import EndedTransactions
from semel_coordinator.transactions.machine.joint.joint_entities import (
    JointEndsKept,
    JointId,
    JointIdExpired,
    JointKeptAlive,
    JointPoolGrown,
    JointPoolShrunk,
    JointWritersJoined,
)
from semel_coordinator.transactions.machine.joint.joint_state import Joints
from semel_coordinator.transactions.machine.state.entities import (
    DecidedTransaction,
    OngoingTransaction,
    PreparedTransaction,
    Producer,
    TransactionalId,
    TransactionKey,
    size_bytes_of,
)
from semel_coordinator.transactions.machine.state.limits import HistoryLimits
from semel_coordinator.transactions.machine.state.people import Client
from semel_coordinator.transactions.machine.state.principal_counts import IdsOfPrincipals
from semel_coordinator.transactions.machine.state.record_partitions import (
    partition_for_id,
    partition_of,
)
from semel_coordinator.transactions.machine.state.records import (
    CoordinatorEpoch,
    EndedTransactionsKept,
    ParticipantsAdded,
    ProducerIdsGiven,
    TransactionalIdExpired,
    TransactionCompleted,
    TransactionLogForgotten,
    TransactionLogHandedOver,
    TransactionLogServed,
    TransactionLogTakenOver,
    TransactionsRecord,
)
from semel_coordinator.transactions.machine.state.transitions import (
    LEGAL_PREDECESSORS,
    Outcome,
    TransactionState,
)
from semel_runtime.cluster.metadata_copy import ClusterCopy

NO_HISTORY = HistoryLimits(entries_max=0)


class TransactionsState:
    """Transactional ids, their producers, and the transactions that are not complete."""

    def __init__(
        self, cluster: ClusterCopy, history: HistoryLimits = NO_HISTORY, audit_entries_max: int = 0
    ) -> None:
        """Start with nothing. The cluster says where its producer ids begin."""
        self._cluster = cluster
        self.history = EndedTransactions(history)
        self.audit = AuditTrail(audit_entries_max)
        self.coordinator_epochs: dict[int, int] = {}
        """By transaction-log partition."""
        self.producer_ids_given: dict[int, ProducerIdsGiven] = {}
        """By transaction-log partition."""
        self.transactional_ids: dict[str, TransactionalId] = {}
        self.producers: dict[int, Producer] = {}
        """By producer id; idempotent producers have none."""
        self.ongoing: dict[int, OngoingTransaction] = {}
        """By producer id: only its current epoch can be ongoing."""
        self.prepared: dict[TransactionKey, PreparedTransaction] = {}
        self.decided: dict[TransactionKey, DecidedTransaction] = {}
        """In the order of their decisions."""
        self.joints = Joints()
        self.principals = IdsOfPrincipals()
        self.handed_over: dict[int, TransactionLogHandedOver] = {}
        """By transaction-log partition: these are served no more, though all of them is known."""
        self.taken_over: dict[int, TransactionLogTakenOver] = {}
        """By transaction-log partition: these are not served yet."""
        self.participant_count = 0
        """Of all transactions, ongoing, prepared and decided."""
        self.participants_bytes = 0
        """What these take in records, at the most."""
        self._incomplete: dict[int, dict[int, None]] = {}
        """Epochs of each producer that are in `decided`; rising, except for prepared ones."""
        self._last_offset = -1

    # -- questions -----------------------------------------------------------------------------

    @property
    def transaction_count(self) -> int:
        """Transactions that are not complete."""
        return len(self.ongoing) + len(self.prepared) + len(self.decided)

    def is_unserved(self, partition: int) -> bool:
        """Whether this instance does not serve a transaction-log partition."""
        return partition in self.handed_over or partition in self.taken_over

    def is_known(self, transactional_id: str) -> bool:
        """Whether a transactional id is that of a producer, or of joint transactions."""
        return transactional_id in self.transactional_ids or transactional_id in self.joints.by_id

    def ids_given(self, partition: int) -> ProducerIdsGiven:
        """Return which producer ids a transaction-log partition has given out."""
        known = self.producer_ids_given.get(partition)
        if known is not None:
            return known
        start = producer_id_counters_start(self._cluster.cluster_id)
        return ProducerIdsGiven(partition=partition, count=start, start=start)

    def was_given(self, producer_id: int) -> bool:
        """Whether a producer id was given out, as far as this instance knows."""
        return self.ids_given(transaction_log_partition_of(producer_id)).includes(producer_id)

    def incomplete_count(self, producer_id: int) -> int:
        """Return how many transactions of a producer wait for their markers."""
        return len(self._incomplete.get(producer_id, ()))

    def incomplete_of(self, producer_id: int) -> Iterator[DecidedTransaction]:
        """Yield a producer's decided transactions, the oldest first."""
        for producer_epoch in sorted(self._incomplete.get(producer_id, ())):
            yield self.decided[TransactionKey(producer_id, producer_epoch)]

    def prepared_of(self, producer_id: int) -> Iterator[PreparedTransaction]:
        """Yield a producer's prepared transactions, the oldest first."""
        for producer_epoch in self.producers[producer_id].prepared:
            yield self.prepared[TransactionKey(producer_id, producer_epoch)]

    def is_complete_below(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether all markers of a producer's transactions before an epoch are acknowledged.

        Undecided ones count as complete: a wait for them might never end.
        """
        oldest = min(self._incomplete.get(producer_id, ()), default=producer_epoch)
        return oldest >= producer_epoch

    def state_of(self, key: TransactionKey) -> TransactionState:
        """Return where a transaction stands."""
        decided = self.decided.get(key)
        if decided is not None:
            return decided.state
        ongoing = self.ongoing.get(key.producer_id)
        if ongoing is not None and ongoing.producer_epoch == key.producer_epoch:
            return TransactionState.ONGOING
        if key in self.prepared:
            return TransactionState.PREPARED
        producer = self.producers.get(key.producer_id)
        if producer is None or key.producer_epoch >= producer.producer_epoch:
            return TransactionState.EMPTY
        if producer.outcome_of(key.producer_epoch) is Outcome.COMMITTED:
            return TransactionState.COMPLETE_COMMIT
        return TransactionState.COMPLETE_ABORT

    # -- changes -------------------------------------------------------------------------------

    def replay(self, offset: int, record: TransactionsRecord) -> None:  # noqa: C901, PLR0912 - a case for each kind
        """Apply one record."""
        self._last_offset = offset
        match record:
            case ParticipantsAdded():
                self._add_participants(record)
            case DecidedTransaction():
                self._decide(record)
            case PreparedTransaction():
                self._prepare(record)
            case Producer():
                self.producers[record.producer_id] = record
            case TransactionCompleted():
                self._complete(record)
            case EndedTransactionsKept() | AuditNoted():
                self._remember(record)
            case TransactionalId():
                self._enter_id(record)
            case TransactionalIdExpired():
                self.principals.leave(self.transactional_ids.pop(record.transactional_id).principal)
                del self.producers[record.producer_id]
            case ProducerIdsGiven():
                self.producer_ids_given[record.partition] = record
            case CoordinatorEpoch():
                self.coordinator_epochs[record.partition] = record.coordinator_epoch
            case JointPoolShrunk():
                self.joints.replay(record)
                for producer_id in record.producer_ids:
                    del self.producers[producer_id]
            case JointId():
                joint = self.joints.by_id.get(record.transactional_id)
                before = None if joint is None else joint.known.principal
                self.principals.enter(before, record.principal)
                self.joints.replay(record)
            case JointIdExpired():
                self.principals.leave(self.joints.by_id[record.transactional_id].known.principal)
                self.joints.replay(record)
            case JointEndsKept() | JointPoolGrown() | JointWritersJoined() | JointKeptAlive():
                self.joints.replay(record)
            case TransactionLogHandedOver():
                self.handed_over[record.partition] = record
            case TransactionLogTakenOver():
                self.taken_over[record.partition] = record
            case TransactionLogServed():
                self.coordinator_epochs[record.partition] = record.coordinator_epoch
                self._settle(record.partition)
            case TransactionLogForgotten():
                self._forget(record)
                self._settle(record.partition)
            case _:
                assert_never(record)

    def snapshot(self) -> Iterable[tuple[int, TransactionsRecord]]:
        """Return records that make the same state, transactions in the order of their decisions.

        Their order is what counts; the offset of each is that of the newest record replayed.
        """
        records = [
            *self._known(),
            *self.handed_over.values(),
            *self.taken_over.values(),
            *self.audit.snapshot(),
        ]
        last_offset = self._last_offset
        return ((last_offset, record) for record in records)

    def known_of(self, partition: int, *, partition_count: int) -> Iterator[TransactionsRecord]:
        """Yield what a snapshot has of one transaction-log partition, in the same order."""
        for record in self._known():
            if partition_of(record, partition_count=partition_count) == partition:
                yield record

    def _known(self) -> list[TransactionsRecord]:
        records: list[TransactionsRecord] = [
            CoordinatorEpoch(partition=partition, coordinator_epoch=coordinator_epoch)
            for partition, coordinator_epoch in self.coordinator_epochs.items()
        ]
        records += self.producer_ids_given.values()
        records += self.transactional_ids.values()
        # Before the producers, whose epochs say that these are decided.
        records += self.prepared.values()
        records += self.decided.values()
        records += self.producers.values()
        records += [_participants_of(ongoing) for ongoing in self.ongoing.values()]
        records += self.joints.snapshot()
        epochs = self.coordinator_epochs
        records += [
            replace(part, coordinator_epoch=epochs.get(part.partition, 0))
            for part in self.history.parts()
        ]
        return records

    def _enter_id(self, record: TransactionalId) -> None:
        known = self.transactional_ids.get(record.transactional_id)
        self.principals.enter(None if known is None else known.principal, record.principal)
        if known is not None and known.client != record.client:
            self._note_client(known.producer_id, known.client)
        self.transactional_ids[record.transactional_id] = record

    def _note_client(self, producer_id: int, client: Client) -> None:
        """Note whose the transactions are that wait still, before their id has another client."""
        for decided in list(self.incomplete_of(producer_id)):
            if decided.client is None:
                self.decided[decided.key] = replace(decided, client=client)
        for prepared in list(self.prepared_of(producer_id)):
            if prepared.client is None:
                self.prepared[prepared.key] = replace(prepared, client=client)

    def _add_participants(self, record: ParticipantsAdded) -> None:
        self._enter(
            TransactionKey(record.producer_id, record.producer_epoch), TransactionState.ONGOING
        )
        ongoing = self.ongoing.get(record.producer_id)
        if ongoing is None:
            ongoing = OngoingTransaction(
                producer_id=record.producer_id,
                producer_epoch=record.producer_epoch,
                start_ms=record.start_ms,
                traceparent=record.traceparent,
                participants={},
            )
            self.ongoing[record.producer_id] = ongoing
        new = [
            participant
            for participant in record.participants
            if participant not in ongoing.participants
        ]
        ongoing.participants.update(dict.fromkeys(new))
        self._count(new)

    def _prepare(self, record: PreparedTransaction) -> None:
        self._enter(record.key, TransactionState.PREPARED)
        self._end_ongoing(record.key)
        self._count(record.participants)
        self.prepared[record.key] = record

    def _end_ongoing(self, key: TransactionKey) -> None:
        ongoing = self.ongoing.get(key.producer_id)
        if ongoing is not None and ongoing.producer_epoch == key.producer_epoch:
            del self.ongoing[key.producer_id]
            self._count_off(ongoing.participants)

    def _decide(self, record: DecidedTransaction) -> None:
        key = record.key
        self._enter(key, record.state)
        self._end_ongoing(key)
        prepared = self.prepared.pop(key, None)
        if prepared is not None:
            self._count_off(prepared.participants)
        self._count(record.participants)
        self.decided[key] = self._with_writer(record) if self.joints.by_id else record
        self._incomplete.setdefault(record.producer_id, {})[record.producer_epoch] = None

    def _complete(self, record: TransactionCompleted) -> None:
        key = TransactionKey(record.producer_id, record.producer_epoch)
        self._enter(key, record.state)
        decided = self.decided.pop(key)
        self._count_off(decided.participants)
        incomplete = self._incomplete[record.producer_id]
        del incomplete[record.producer_epoch]
        if not incomplete:
            del self._incomplete[record.producer_id]
        self._keep(decided, record)

    def _with_writer(self, record: DecidedTransaction) -> DecidedTransaction:
        """Note the version of a joint transaction, and its writer: both are over with it."""
        producer = self.producers.get(record.producer_id)
        joint = None if producer is None else self.joints.by_id.get(producer.transactional_id)
        writer = None if joint is None else joint.writer_of(record.producer_id)
        if joint is None or writer is None:
            return record
        client = Client(writer, principal=joint.known.principal)
        return replace(record, txn_version=joint.known.open_version, client=client)

    def _keep(self, decided: DecidedTransaction, completed: TransactionCompleted) -> None:
        """Let the history have a transaction that has ended."""
        producer_id = decided.producer_id
        name = self.producers[producer_id].transactional_id
        known = self.transactional_ids.get(name)
        self.history.add(
            transaction_log_partition_of(producer_id),
            decided,
            completed,
            transactional_id=name,
            client=None if known is None else known.client,
        )

    def _remember(self, record: EndedTransactionsKept | AuditNoted) -> None:
        """Take what nothing is decided by."""
        if isinstance(record, AuditNoted):
            self.audit.replay(record)
        else:
            self.history.load(record)

    def _settle(self, partition: int) -> None:
        self.handed_over.pop(partition, None)
        self.taken_over.pop(partition, None)

    def _forget(self, record: TransactionLogForgotten) -> None:
        """Know nothing of a partition any more."""
        partition = record.partition
        self.coordinator_epochs.pop(partition, None)
        self.producer_ids_given.pop(partition, None)
        self.history.forget(partition)
        for producer_id in self._producers_in(partition):
            transactional_id = self.producers.pop(producer_id).transactional_id
            known = self.transactional_ids.pop(transactional_id, None)
            self.principals.leave("" if known is None else known.principal)
            ongoing = self.ongoing.pop(producer_id, None)
            self._count_off(() if ongoing is None else ongoing.participants)
            self._incomplete.pop(producer_id, None)
        for key in [each for each in self.prepared if _is_in(each, partition)]:
            self._count_off(self.prepared.pop(key).participants)
        for key in [each for each in self.decided if _is_in(each, partition)]:
            self._count_off(self.decided.pop(key).participants)
        names = [
            each
            for each in self.joints.by_id
            if partition_for_id(each, record.partition_count) == partition
        ]
        for name in names:
            self.principals.leave(self.joints.by_id[name].known.principal)
        self.joints.forget(names)

    def _count(self, participants: Collection[Participant]) -> None:
        self.participant_count += len(participants)
        self.participants_bytes += size_bytes_of(participants)

    def _count_off(self, participants: Collection[Participant]) -> None:
        self.participant_count -= len(participants)
        self.participants_bytes -= size_bytes_of(participants)

    def _producers_in(self, partition: int) -> list[int]:
        return [
            producer
            for producer in self.producers
            if transaction_log_partition_of(producer) == partition
        ]

    def _enter(self, key: TransactionKey, after: TransactionState) -> None:
        before = self.state_of(key)
        assert before in LEGAL_PREDECESSORS[after], f"{key} goes from {before} to {after}"


def _participants_of(ongoing: OngoingTransaction) -> ParticipantsAdded:
    return ParticipantsAdded(
        producer_id=ongoing.producer_id,
        producer_epoch=ongoing.producer_epoch,
        start_ms=ongoing.start_ms,
        traceparent=ongoing.traceparent,
        participants=tuple(ongoing.participants),
    )


def _is_in(key: TransactionKey, partition: int) -> bool:
    return transaction_log_partition_of(key.producer_id) == partition
