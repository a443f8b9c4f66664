"""The handlers that keep the coordinator in order: what is forgotten, and what operators end."""

from collections.abc import Callable, Iterable, Sequence

from semel_common.errors import InvalidRequestError, TransactionalIdNotFoundError
from semel_coordinator.transactions.machine.expiry import (
    FenceAnswer,
    FenceInquiry,
    answer_fences,
    expired,
    joints_expired,
)
from semel_coordinator.transactions.machine.joint.joint_entities import JointIdExpired
from semel_coordinator.transactions.machine.operator_decisions import (
    OperatorAbort,
    OperatorFence,
    abort_transaction,
    abort_version,
    fence_producer,
)
from semel_coordinator.transactions.machine.ownership import Ownership
from semel_coordinator.transactions.machine.state.entities import Producer, TransactionKey
from semel_coordinator.transactions.machine.state.limits import TransactionLimits
from semel_coordinator.transactions.machine.state.records import TransactionsRecord
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_runtime.machine import Result


class Upkeep:
    """A part of the transactions' machine, over its state."""

    def __init__(
        self,
        state: TransactionsState,
        limits: TransactionLimits,
        ownership: Ownership,
        find_producer: Callable[[str, int], Producer],
    ) -> None:
        """Decide on the state as it is at each call."""
        self._state = state
        self._limits = limits
        self._ownership = ownership
        self._find_producer = find_producer

    # -- forgetting ----------------------------------------------------------------------------

    def producer_ids(self) -> Result[Sequence[int], TransactionsRecord]:
        """Return the producers to be given to `expire_transactional_ids`, in pieces."""
        return Result(list(self._state.producers))

    def expire_transactional_ids(
        self, producer_ids: Iterable[int], *, now_ms: int
    ) -> Result[tuple[str, ...], TransactionsRecord]:
        """Forget those of the producers whose transactional ids are idle; answer the ids."""
        served = filter(self._ownership.serves, producer_ids)
        records = tuple(expired(self._state, self._limits, served, now_ms=now_ms))
        return Result(tuple(record.transactional_id for record in records), records)

    def joint_ids(self) -> Result[Sequence[str], TransactionsRecord]:
        """Return the ids of joint transactions to be given to `expire_joint_ids`, in pieces."""
        return Result(list(self._state.joints.by_id))

    def expire_joint_ids(
        self, names: Iterable[str], *, now_ms: int
    ) -> Result[tuple[str, ...], TransactionsRecord]:
        """Forget idle producers of those ids, as many as one step may; answer the ids forgotten."""
        served = filter(self._ownership.serves_id, names)
        records = tuple(joints_expired(self._state, self._limits, served, now_ms=now_ms))
        gone = (record.transactional_id for record in records if isinstance(record, JointIdExpired))
        return Result(tuple(gone), records)

    def inquire_fences(
        self, inquiries: Sequence[FenceInquiry]
    ) -> Result[tuple[FenceAnswer, ...], TransactionsRecord]:
        """Tell participants which producers they may forget; see expiry.py.

        Through a commit: a deposed owner may not know of a decision.
        """
        return Result(answer_fences(self._state, self._ownership, inquiries), verify=True)

    # -- operators -----------------------------------------------------------------------------

    def abort_transaction(
        self, transactional_id: str, key: TransactionKey, *, dry_run: bool, now_ms: int
    ) -> Result[OperatorAbort, TransactionsRecord]:
        """Abort a transaction in its producer's place; see operators.py. Idempotent."""
        joint = self._state.joints.by_id.get(transactional_id)
        if joint is not None:
            self._ownership.partition_for(transactional_id)
            decided = abort_version(self._state, joint, key, now_ms=now_ms)
        else:
            producer = self._find_producer(transactional_id, key.producer_id)
            decided = abort_transaction(self._state, producer, key.producer_epoch, now_ms=now_ms)
        return Result(decided.response) if dry_run else decided

    def fence_producer(
        self, transactional_id: str, instance_id: str, *, dry_run: bool, now_ms: int
    ) -> Result[OperatorFence, TransactionsRecord]:
        """Take a transactional id from its producer; see operators.py. Idempotent."""
        self._ownership.partition_for(transactional_id)
        if transactional_id in self._state.joints.by_id:
            raise InvalidRequestError(
                f"{transactional_id!r} is an id of joint transactions: a new run fences those"
                " before it; abort the transaction of any writer to end the open version",
                field="transactional_id",
            )
        known = self._state.transactional_ids.get(transactional_id)
        if known is None:
            raise TransactionalIdNotFoundError(f"no transactional id {transactional_id!r}")
        decided = fence_producer(self._state, known, instance_id, now_ms=now_ms)
        return Result(decided.response) if dry_run else decided
