"""The transaction coordinator's machine.

Theory of operation. Each epoch of a producer is a transaction of its own. The current epoch can be
written to; the decision on it (by EndTxn, InitProducerId, a time-out or an inquiry) is one set of
records that fixes its outcome with all participants, and begins the next epoch. So the producer
goes on at once, while decided transactions wait for their markers, each by itself, until the last
one is acknowledged and only the outcome is remembered:

    EMPTY → ONGOING ─────────────→ PREPARE_COMMIT → COMPLETE_COMMIT
                 ├─ → PREPARED → ┤
                 └───────────────→ PREPARE_ABORT  → COMPLETE_ABORT

Handlers bear the RPCs' names. They raise, or return a response with records; only replay changes
the state. Markers are no effect of a handler but a query, `markers.pending`: after a restart they
resume by themselves. Markers, queries, expiry, operators, moves and joint transactions have parts
of their own, over the same state.
"""

from collections.abc import Iterable, Sequence

from semel_common.errors import (
    InvalidProducerIdMappingError,
    InvalidRequestError,
    NotCoordinatorError,
)
from semel_common.ids import GroupId, Participant, producer_id_of
from semel_coordinator.transactions.machine.end_txn import (
    END_TXN_TABLE,
    EndTxnAnswer,
    abort_records,
    commit_records,
    refused,
    row_of,
)
from semel_coordinator.transactions.machine.expiry import IdExpiry
from semel_coordinator.transactions.machine.history.history_queries import HistoryQueries
from semel_coordinator.transactions.machine.init_producer_id import (
    InitProducerId,
    check_timeout,
    first_init,
    give_producer_id,
    next_init,
)
from semel_coordinator.transactions.machine.inquiry import Inquirer, Inquiry, InquiryAnswer
from semel_coordinator.transactions.machine.joint.decisions import live_writer
from semel_coordinator.transactions.machine.joint.joint_machine import JointTransactions
from semel_coordinator.transactions.machine.moves import TransactionLogMoves
from semel_coordinator.transactions.machine.operator_decisions import OperatorDecisions
from semel_coordinator.transactions.machine.outcome import (
    OutcomeAnswer,
    TransactionName,
    find_outcome,
)
from semel_coordinator.transactions.machine.ownership import Ownership
from semel_coordinator.transactions.machine.pending_markers import PendingMarkers
from semel_coordinator.transactions.machine.prepared import (
    complete,
    completion_records,
    prepare,
)
from semel_coordinator.transactions.machine.queries import TransactionQueries
from semel_coordinator.transactions.machine.recovery import raised
from semel_coordinator.transactions.machine.registration import added, check_current
from semel_coordinator.transactions.machine.state.entities import (
    ParticipantSet,
    PreparedTransaction,
    Producer,
    TransactionKey,
)
from semel_coordinator.transactions.machine.state.limits import TransactionLimits
from semel_coordinator.transactions.machine.state.people import Operator
from semel_coordinator.transactions.machine.state.records import (
    CoordinatorEpoch,
    TransactionsRecord,
)
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import AbortReason
from semel_coordinator.transactions.machine.timeouts import TimedOut, time_out
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.machine import Result


class TransactionsMachine:
    """Decides on the transactions of the transaction-log partitions that one instance owns."""

    def __init__(
        self, *, instance_id: int, cluster: ClusterCopy, limits: TransactionLimits
    ) -> None:
        """Start with nothing. The copy says how many partitions and coordinators there are."""
        self.instance_id = instance_id
        self._limits = limits
        self._state = TransactionsState(cluster, limits.history, limits.audit_entries_max)
        self._ownership = Ownership(self._state, instance_id=instance_id, cluster=cluster)
        self.moves = TransactionLogMoves(self._state, instance_id=instance_id, cluster=cluster)
        self.markers = PendingMarkers(self._state, self._ownership)
        self.queries = TransactionQueries(self._state, self._ownership)
        self.audit = self._state.audit
        self.history = HistoryQueries(self._state, self._ownership, limits.history)
        self.expiry = IdExpiry(self._state, limits, self._ownership)
        self.operators = OperatorDecisions(self._state, self._ownership, self._producer)
        self.joint = JointTransactions(self._state, limits, self._ownership)

    def replay(self, offset: int, record: TransactionsRecord) -> None:
        """Apply one record."""
        self._state.replay(offset, record)

    def snapshot(self) -> Iterable[tuple[int, TransactionsRecord]]:
        """Return records that make the same state."""
        return self._state.snapshot()

    # -- at start ------------------------------------------------------------------------------

    def claim(self) -> Result[int, TransactionsRecord]:
        """Raise the coordinator epoch of every partition that is served; answer how many there are.

        What the metadata say of moves meanwhile is followed in a step of its own, before this one.
        Raises CoordinatorNotAvailableError as long as the cluster's layout is not known.
        """
        epochs = self._state.coordinator_epochs
        records = [
            CoordinatorEpoch(partition=partition, coordinator_epoch=epochs.get(partition, 0) + 1)
            for partition in self._ownership.partitions()
        ]
        return Result(len(records), records)

    def raised(
        self,
        partitions: Sequence[int],
        *,
        image: ClusterImage,
        floor: int,
        producer_ids_floor: int,
        now_ms: int,
    ) -> list[TransactionsRecord]:
        """Return the records that make an older copy of a volume fit to serve; see recovery.py.

        What moves away by this image counts as handed over: it may have been, after the copy was
        made.
        """
        records = raised(
            self._state,
            partitions,
            partition_count=image.layout.transaction_log_partitions,
            floor=floor,
            producer_ids_floor=producer_ids_floor,
            now_ms=now_ms,
        )
        return [*self.moves.following(image), *records, *self.moves.leaving(image)]

    # -- producers -----------------------------------------------------------------------------

    def init_producer_id(
        self, call: InitProducerId, *, now_ms: int
    ) -> Result[TransactionKey, TransactionsRecord]:
        """Give a producer its id and epoch, and fence the instance before.

        Idempotent for one (instance, number). Raises NotCoordinatorError, ProducerFencedError,
        InvalidTransactionTimeoutError, ThrottlingQuotaExceededError.
        """
        check_timeout(self._limits, call.timeout_ms)
        partition = self._ownership.partition_for(call.transactional_id)
        self._check_not_joint(call.transactional_id)
        known = self._state.transactional_ids.get(call.transactional_id)
        if known is not None:
            return next_init(self._state, known, call, now_ms=now_ms)
        return first_init(self._state, self._limits, call, partition=partition, now_ms=now_ms)

    def give_producer_id(self) -> Result[TransactionKey, TransactionsRecord]:
        """Give out a fresh producer id, with epoch 0, for idempotent sends."""
        owned = self._ownership.partitions()
        if not owned:
            raise NotCoordinatorError("this instance owns no transaction-log partition")
        given = give_producer_id(self._state, owned[0])
        return Result(TransactionKey(producer_id_of(given.partition, given.count), 0), (given,))

    # -- transactions --------------------------------------------------------------------------

    def add_partitions_to_txn(
        self,
        transactional_id: str,
        key: TransactionKey,
        participants: Sequence[Participant],
        *,
        traceparent: str = "",
        now_ms: int,
    ) -> Result[None, TransactionsRecord]:
        """Register participants with the current transaction; a known one writes nothing.

        Raises InvalidProducerIdMappingError, NotCoordinatorError, the errors of
        `REGISTRATION_TABLE`, and InvalidRequestError and ThrottlingQuotaExceededError past limits.
        """
        joint = self._state.joints.by_id.get(transactional_id)
        if joint is not None:
            self._ownership.partition_for(transactional_id)
            producer = live_writer(self._state, joint, key)
        else:
            producer = self._producer(transactional_id, key.producer_id)
            check_current(producer, key.producer_epoch)
        record = added(
            self._state,
            self._limits,
            producer,
            participants,
            traceparent=traceparent,
            now_ms=now_ms,
        )
        return Result(None) if record is None else Result(None, (record,))

    def add_offsets_to_txn(
        self,
        transactional_id: str,
        key: TransactionKey,
        group_id: str,
        *,
        traceparent: str = "",
        now_ms: int,
    ) -> Result[None, TransactionsRecord]:
        """Register a consumer group, which is a participant like any other."""
        return self.add_partitions_to_txn(
            transactional_id, key, (GroupId(group_id),), traceparent=traceparent, now_ms=now_ms
        )

    def end_txn(
        self,
        transactional_id: str,
        key: TransactionKey,
        *,
        commit: bool,
        participants: ParticipantSet | None,
        traceparent: str = "",
        now_ms: int,
    ) -> Result[TransactionKey, TransactionsRecord]:
        """Decide a transaction, and answer the producer's next one.

        `participants`: exactly these commit; for an abort, all with a sent request. None: the
        registered ones. Idempotent. Raises InvalidProducerIdMappingError, NotCoordinatorError, the
        errors of `END_TXN_TABLE`, ConcurrentTransactionsError (of commits), and
        ThrottlingQuotaExceededError past the limits (of commits).
        """
        producer = self._producer(transactional_id, key.producer_id)
        cell = END_TXN_TABLE[row_of(producer, key.producer_epoch)]
        answer = cell.commit if commit else cell.abort
        next_key = TransactionKey(key.producer_id, key.producer_epoch + 1)
        if answer is EndTxnAnswer.SUCCESS:
            return Result(next_key)
        if answer is EndTxnAnswer.ABORT_PREPARED:
            prepared = self._state.prepared[key]
            return Result(
                next_key,
                completion_records(producer, prepared, reason=AbortReason.CLIENT, now_ms=now_ms),
            )
        if answer is not EndTxnAnswer.DECIDE:
            raise refused(producer, key.producer_epoch, answer)
        decide = commit_records if commit else abort_records
        records = decide(
            self._state,
            self._limits,
            producer,
            named=participants,
            traceparent=traceparent,
            now_ms=now_ms,
        )
        return Result(next_key, records)

    def prepare_txn(
        self,
        transactional_id: str,
        key: TransactionKey,
        *,
        participants: ParticipantSet | None,
        traceparent: str = "",
        now_ms: int,
    ) -> Result[TransactionKey, TransactionsRecord]:
        """Promise that a transaction can be committed, and answer the producer's next one.

        `participants`: as of EndTxn(commit). Idempotent. Raises InvalidProducerIdMappingError,
        NotCoordinatorError, the errors of `PREPARE_TABLE`, and ConcurrentTransactionsError and
        ThrottlingQuotaExceededError past the limits.
        """
        return prepare(
            self._state,
            self._limits,
            self._producer(transactional_id, key.producer_id),
            key,
            named=participants,
            traceparent=traceparent,
            now_ms=now_ms,
        )

    def complete_prepared_txn(
        self,
        transactional_id: str,
        key: TransactionKey,
        *,
        commit: bool,
        producer_epoch: int | None,
        operator: Operator | None = None,
        traceparent: str = "",
        now_ms: int,
    ) -> Result[None, TransactionsRecord]:
        """Decide a prepared transaction; see prepared.py.

        `producer_epoch`: the caller's own; None of a caller that is no producer of this id; of
        that one, `operator` says who it is.
        Idempotent. Raises InvalidProducerIdMappingError, NotCoordinatorError, ProducerFencedError,
        and InvalidTxnStateError of a transaction that is not prepared, or ended otherwise.
        """
        return complete(
            self._state,
            self._producer(transactional_id, key.producer_id),
            key,
            commit=commit,
            producer_epoch=producer_epoch,
            operator=operator,
            traceparent=traceparent,
            now_ms=now_ms,
        )

    def prepared_before(
        self, key: TransactionKey
    ) -> Result[list[PreparedTransaction], TransactionsRecord]:
        """Return what a producer has prepared in epochs before this one, the oldest first.

        Raises NotCoordinatorError.
        """
        self._ownership.check_producer_id(key.producer_id)
        prepared = self._state.prepared_of(key.producer_id)
        return Result([each for each in prepared if each.producer_epoch < key.producer_epoch])

    def inquire_transactions(
        self, inquiries: Sequence[Inquiry], *, now_ms: int
    ) -> Result[tuple[InquiryAnswer, ...], TransactionsRecord]:
        """Tell participants what became of transactions; see inquiry.py."""
        inquirer = Inquirer(self._state, self._limits, self._ownership, now_ms=now_ms)
        return inquirer.inquire(inquiries)

    def get_transaction_outcome(
        self, name: TransactionName, *, now_ms: int
    ) -> Result[OutcomeAnswer, TransactionsRecord]:
        """Tell how a transaction ended; see outcome.py."""
        return find_outcome(self._state, self._ownership, name, now_ms=now_ms)

    def tick(self, now_ms: int) -> Result[tuple[TimedOut, ...], TransactionsRecord]:
        """Abort what is timed out, up to a limit; answer what it was. See timeouts.py."""
        return time_out(self._state, self._limits, self._ownership, now_ms=now_ms)

    # -- producers that are known --------------------------------------------------------------

    def current_epoch(self, producer_id: int) -> int | None:
        """Return a producer's current epoch; None if it is unknown or has no transactions."""
        producer = self._state.producers.get(producer_id)
        return None if producer is None else producer.producer_epoch

    def _producer(self, transactional_id: str, producer_id: int) -> Producer:
        """Find the producer of a transactional id that is served here."""
        self._ownership.partition_for(transactional_id)
        self._check_not_joint(transactional_id)
        known = self._state.transactional_ids.get(transactional_id)
        if known is None:
            raise InvalidProducerIdMappingError(f"transactional id {transactional_id!r} is unknown")
        if known.producer_id != producer_id:
            raise InvalidProducerIdMappingError(
                f"{transactional_id!r} has the producer id {known.producer_id}, not {producer_id}"
            )
        return self._state.producers[producer_id]

    def _check_not_joint(self, transactional_id: str) -> None:
        if transactional_id in self._state.joints.by_id:
            raise InvalidRequestError(
                f"{transactional_id!r} is an id of joint transactions: JoinTxn gives it writers,"
                " and EndJointTxn ends their transactions",
                field="transactional_id",
            )
