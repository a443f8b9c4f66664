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
the state. Markers are no effect of a handler but a query, `pending_markers`: after a restart they
resume by themselves.
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
from semel_coordinator.transactions.machine.gauges import Standing, standing
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
from semel_coordinator.transactions.machine.operator_handlers import Upkeep
from semel_coordinator.transactions.machine.outcome import (
    OutcomeAnswer,
    TransactionName,
    find_outcome,
)
from semel_coordinator.transactions.machine.ownership import Ownership
from semel_coordinator.transactions.machine.prepared import (
    complete,
    completion_records,
    prepare,
)
from semel_coordinator.transactions.machine.queries import (
    ListFilter,
    TransactionalIdDescription,
    TransactionListing,
    candidates,
    described,
    listed,
)
from semel_coordinator.transactions.machine.recovery import raised
from semel_coordinator.transactions.machine.registration import added, check_current
from semel_coordinator.transactions.machine.state.entities import (
    DecidedTransaction,
    ParticipantSet,
    PreparedTransaction,
    Producer,
    TransactionKey,
)
from semel_coordinator.transactions.machine.state.limits import TransactionLimits
from semel_coordinator.transactions.machine.state.records import (
    CoordinatorEpoch,
    TransactionCompleted,
    TransactionsRecord,
)
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import COMPLETED, AbortReason
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
        self._limits = limits
        self._state = TransactionsState(cluster)
        self._ownership = Ownership(self._state, instance_id=instance_id, cluster=cluster)
        self.moves = TransactionLogMoves(self._state, instance_id=instance_id, cluster=cluster)
        self.upkeep = Upkeep(self._state, limits, self._ownership, self._producer)
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
        traceparent: str = "",
        now_ms: int,
    ) -> Result[None, TransactionsRecord]:
        """Decide a prepared transaction; see prepared.py.

        `producer_epoch`: the caller's own; None of a caller that is no producer of this id.
        Idempotent. Raises InvalidProducerIdMappingError, NotCoordinatorError, ProducerFencedError,
        and InvalidTxnStateError of a transaction that is not prepared, or ended otherwise.
        """
        return complete(
            self._state,
            self._producer(transactional_id, key.producer_id),
            key,
            commit=commit,
            producer_epoch=producer_epoch,
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

    def complete_txn(self, keys: Sequence[TransactionKey]) -> Result[None, TransactionsRecord]:
        """Note that all markers of these transactions are acknowledged. Idempotent.

        Handed-over transactions are left out: their new server asks once more, and notes it.
        """
        decided = self._state.decided
        records = [
            TransactionCompleted(
                producer_id=key.producer_id,
                producer_epoch=key.producer_epoch,
                state=COMPLETED[decided[key].state],
            )
            for key in dict.fromkeys(keys)
            if key in decided and self._ownership.serves(key.producer_id)
        ]
        return Result(None, records)

    def tick(self, now_ms: int) -> Result[tuple[TimedOut, ...], TransactionsRecord]:
        """Abort what is timed out, up to a limit; answer what it was. See timeouts.py."""
        return time_out(self._state, self._limits, self._ownership, now_ms=now_ms)

    # -- questions -----------------------------------------------------------------------------

    def serving(self) -> dict[int, int]:
        """Return the coordinator epochs of the partitions that are served here."""
        epochs = self._state.coordinator_epochs
        return {
            partition: epochs[partition]
            for partition in self._ownership.partitions()
            if partition in epochs
        }

    def pending_markers(self) -> list[DecidedTransaction]:
        """Return the transactions whose markers are not all written, as they were decided."""
        decided = self._state.decided.values()
        return [each for each in decided if self._ownership.serves(each.producer_id)]

    def coordinator_epoch(self, partition: int) -> int:
        """Return the coordinator epoch of an owned transaction-log partition."""
        return self._state.coordinator_epochs[partition]

    def current_epoch(self, producer_id: int) -> int | None:
        """Return a producer's current epoch; None if it is unknown or has no transactions."""
        producer = self._state.producers.get(producer_id)
        return None if producer is None else producer.producer_epoch

    def is_complete(self, key: TransactionKey) -> bool:
        """Whether a transaction waits for no marker. Raises NotCoordinatorError."""
        self._ownership.check_producer_id(key.producer_id)
        return key not in self._state.decided

    def is_complete_below(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether no transaction of a producer before an epoch waits for a marker.

        Raises NotCoordinatorError.
        """
        self._ownership.check_producer_id(producer_id)
        return self._state.is_complete_below(producer_id, producer_epoch)

    def standing(self, *, now_ms: int) -> Standing:
        """Return how transactions stand now, durable or not: for people, not for clients."""
        return standing(self._state, self._ownership, now_ms=now_ms)

    def describe_transactions(
        self, transactional_ids: Iterable[str]
    ) -> Result[tuple[TransactionalIdDescription, ...], TransactionsRecord]:
        """Describe transactional ids; of each that cannot be described, say why."""
        return Result(tuple(self._describe(each) for each in transactional_ids))

    def list_candidates(self, wanted: ListFilter) -> Result[Sequence[str], TransactionsRecord]:
        """Return the transactional ids to be given to `list_transactions`, in pieces."""
        return Result(candidates(self._state, wanted))

    def list_transactions(
        self, names: Iterable[str], wanted: ListFilter, *, now_ms: int
    ) -> Result[list[TransactionListing], TransactionsRecord]:
        """List those of the transactional ids that the filter wants."""
        served = filter(self._ownership.serves_id, names)
        return Result(listed(self._state, served, wanted, now_ms=now_ms))

    # -- helpers -------------------------------------------------------------------------------

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

    def _describe(self, transactional_id: str) -> TransactionalIdDescription:
        try:
            self._ownership.partition_for(transactional_id)
        except NotCoordinatorError as error:
            return TransactionalIdDescription(transactional_id=transactional_id, error=error)
        return described(self._state, transactional_id)
