"""The handlers of joint transactions; a part of the transaction coordinator's machine."""

from semel_coordinator.transactions.machine.init_producer_id import check_timeout
from semel_coordinator.transactions.machine.joint.decisions import size_of, version_timed_out
from semel_coordinator.transactions.machine.joint.ending import EndJointTxn, end_joint_txn
from semel_coordinator.transactions.machine.joint.joining import (
    JoinTxn,
    join_txn,
    keep_alive_txn,
)
from semel_coordinator.transactions.machine.joint.joint_entities import (
    JointEnded,
    JointName,
    TimedOutVersion,
)
from semel_coordinator.transactions.machine.ownership import Ownership
from semel_coordinator.transactions.machine.state.entities import TransactionKey
from semel_coordinator.transactions.machine.state.limits import TransactionLimits
from semel_coordinator.transactions.machine.state.records import TransactionsRecord
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.step_size import StepBudget
from semel_runtime.machine import Result


class JointTransactions:
    """Decides on the joint transactions of the transactional ids that one instance owns.

    Every handler raises NotCoordinatorError, and the errors of `JOINT_TABLE`.
    """

    def __init__(
        self, state: TransactionsState, limits: TransactionLimits, ownership: Ownership
    ) -> None:
        """Share the state of the machine that this is a part of."""
        self._state = state
        self._limits = limits
        self._ownership = ownership

    def join_txn(
        self, call: JoinTxn, *, now_ms: int
    ) -> Result[TransactionKey | None, TransactionsRecord]:
        """Give a writer its transaction, and open the version if it is the first one.

        None: the version is committed. Idempotent for one writer. Also raises
        InvalidTransactionTimeoutError, InvalidRequestError for the id of an ordinary producer, and
        ThrottlingQuotaExceededError past the limits.
        """
        check_timeout(self._limits, call.timeout_ms)
        partition = self._ownership.partition_for(call.name.transactional_id)
        return join_txn(self._state, self._limits, call, partition=partition, now_ms=now_ms)

    def keep_alive_txn(self, name: JointName, *, now_ms: int) -> Result[bool, TransactionsRecord]:
        """Restart the timeout of an open version; True: it is committed."""
        self._ownership.partition_for(name.transactional_id)
        return keep_alive_txn(self._state, name, now_ms=now_ms)

    def end_joint_txn(
        self, call: EndJointTxn, *, now_ms: int
    ) -> Result[JointEnded, TransactionsRecord]:
        """Decide a version for all its writers at once.

        Idempotent for one end id. Also raises TransactionAbortableError, a definite abort, for a
        commit that names a writer that is not live; InvalidProducerIdMappingError if it names one
        of an id that is not known; InvalidRequestError for the id of an ordinary producer;
        ConcurrentTransactionsError and ThrottlingQuotaExceededError (of commits) past the limits.
        """
        self._ownership.partition_for(call.name.transactional_id)
        return end_joint_txn(self._state, self._limits, call, now_ms=now_ms)

    def tick(self, now_ms: int) -> Result[tuple[TimedOutVersion, ...], TransactionsRecord]:
        """Abort the open versions whose time is over, as many as one step takes; answer which."""
        budget = StepBudget(self._limits)
        timed_out: list[TimedOutVersion] = []
        records: list[TransactionsRecord] = []
        for name, joint in self._state.joints.open.items():
            if not joint.is_timed_out(now_ms) or not self._ownership.serves_id(name):
                continue
            size = size_of(self._state, joint)
            if not budget.takes(transactions=size.transactions, participants=size.participants):
                break
            records += version_timed_out(self._state, joint, now_ms=now_ms)
            timed_out.append(
                TimedOutVersion(
                    transactional_id=name,
                    txn_version=joint.known.open_version,
                    run=joint.known.run,
                    writers=len(joint.live),
                )
            )
        return Result(tuple(timed_out), records)

    def incomplete_writer(self, transactional_id: str) -> int | None:
        """Return a producer id of an id's writers that waits for a marker; None: none does.

        Raises NotCoordinatorError.
        """
        self._ownership.partition_for(transactional_id)
        joint = self._state.joints.by_id.get(transactional_id)
        for producer_id in () if joint is None else joint.pool:
            if self._state.incomplete_count(producer_id):
                return producer_id
        return None
