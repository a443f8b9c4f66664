"""AbortTransaction and FenceProducer: what operators do in a producer's place.

Each names what is meant so exactly that a repeat, or a request that comes late, hits nothing else:
an abort names the epoch, a fence has an instance id of its own, as any producer that takes over.

A joint transaction ends as a whole: an abort of one writer's transaction aborts its version.
Operators do not fence its id: runs fence one another, and no operator knows the next run.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from semel_common.errors import (
    InvalidProducerIdMappingError,
    InvalidRequestError,
    InvalidTxnStateError,
    TransactionalIdNotFoundError,
)
from semel_coordinator.transactions.machine.decisions import aborted
from semel_coordinator.transactions.machine.init_producer_id import InitProducerId, next_init
from semel_coordinator.transactions.machine.joint.decisions import (
    is_live,
    size_of,
    writers_aborted,
)
from semel_coordinator.transactions.machine.joint.joint_state import Joint
from semel_coordinator.transactions.machine.ownership import Ownership
from semel_coordinator.transactions.machine.state.entities import (
    DecidedTransaction,
    Producer,
    TransactionalId,
    TransactionKey,
)
from semel_coordinator.transactions.machine.state.people import Operator
from semel_coordinator.transactions.machine.state.records import TransactionsRecord
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import AbortReason, Outcome
from semel_runtime.machine import Result

T = TypeVar("T")


class OperatorAbort(Struct, frozen=True, kw_only=True):
    """What an abort does, or has done."""

    participants: int = 0
    """How many are known to have been written to."""
    already_aborted: bool = False


class OperatorFence(Struct, frozen=True, kw_only=True):
    """Whom a fence hits, or has hit."""

    producer_id: int
    fenced_epoch: int
    participants: int = 0


class OperatorDecisions:
    """A part of the transactions' machine, over its state."""

    def __init__(
        self,
        state: TransactionsState,
        ownership: Ownership,
        find_producer: Callable[[str, int], Producer],
    ) -> None:
        """Decide on the state as it is at each call."""
        self._state = state
        self._ownership = ownership
        self._find_producer = find_producer

    def abort_transaction(
        self,
        transactional_id: str,
        key: TransactionKey,
        *,
        operator: Operator | None = None,
        dry_run: bool,
        now_ms: int,
    ) -> Result[OperatorAbort, TransactionsRecord]:
        """Abort a transaction in its producer's place. Idempotent."""
        joint = self._state.joints.by_id.get(transactional_id)
        if joint is not None:
            self._ownership.partition_for(transactional_id)
            decided = _abort_version(self._state, joint, key, now_ms=now_ms)
        else:
            producer = self._find_producer(transactional_id, key.producer_id)
            decided = _abort_epoch(self._state, producer, key.producer_epoch, now_ms=now_ms)
        return Result(decided.response) if dry_run else _by(operator, decided)

    def fence_producer(
        self,
        transactional_id: str,
        instance_id: str,
        *,
        operator: Operator | None = None,
        dry_run: bool,
        now_ms: int,
    ) -> Result[OperatorFence, TransactionsRecord]:
        """Take a transactional id from its producer. Idempotent."""
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
        decided = _fence(self._state, known, instance_id, now_ms=now_ms)
        return Result(decided.response) if dry_run else _by(operator, decided)


def _by(
    operator: Operator | None, decided: Result[T, TransactionsRecord]
) -> Result[T, TransactionsRecord]:
    """Note the operator in each decision."""
    return Result(decided.response, signed(operator, decided.records))


def signed(
    operator: Operator | None, records: Iterable[TransactionsRecord]
) -> tuple[TransactionsRecord, ...]:
    """Return the records with the operator in each decision."""
    return tuple(
        replace(each, operator=operator) if isinstance(each, DecidedTransaction) else each
        for each in records
    )


def _abort_epoch(
    state: TransactionsState, producer: Producer, producer_epoch: int, *, now_ms: int
) -> Result[OperatorAbort, TransactionsRecord]:
    """Abort the current epoch; its producer is told so, and goes on with the next one.

    Raises InvalidTxnStateError for an epoch that has not aborted, and InvalidRequestError for one
    that was never given.
    """
    if producer_epoch == producer.producer_epoch:
        ongoing = state.ongoing.get(producer.producer_id)
        count = 0 if ongoing is None else len(ongoing.participants)
        records = aborted(producer, ongoing, reason=AbortReason.OPERATOR, now_ms=now_ms)
        return Result(OperatorAbort(participants=count), records)
    if producer_epoch > producer.producer_epoch:
        raise InvalidRequestError(
            f"producer epoch {producer_epoch} of {producer.transactional_id!r} was never given out:"
            f" the current one is {producer.producer_epoch}",
            current_epoch=producer.producer_epoch,
        )
    if producer_epoch in producer.prepared:
        raise InvalidTxnStateError(
            f"{producer.transactional_id!r}: transaction of producer epoch {producer_epoch} is"
            " prepared: its application completes it, or `semel transactions complete` does",
            current_epoch=producer.producer_epoch,
        )
    outcome = producer.outcome_of(producer_epoch)
    if outcome is Outcome.ABORTED:
        return Result(OperatorAbort(already_aborted=True))
    known = "has an outcome that is not kept any more" if outcome is None else "is committed"
    raise InvalidTxnStateError(
        f"{producer.transactional_id!r}: transaction of producer epoch {producer_epoch} {known}",
        current_epoch=producer.producer_epoch,
        **({} if outcome is None else {"outcome": outcome.value}),
    )


def _abort_version(
    state: TransactionsState, joint: Joint, key: TransactionKey, *, now_ms: int
) -> Result[OperatorAbort, TransactionsRecord]:
    """Abort the open version of which this is a writer's transaction.

    Of a transaction that is no live writer's, do as `_abort_epoch`. Also raises
    InvalidProducerIdMappingError.
    """
    if key.producer_id not in joint.pool:
        raise InvalidProducerIdMappingError(
            f"{joint.known.transactional_id!r} has no writer with the producer id {key.producer_id}"
        )
    if not is_live(state, joint, key):
        producer = state.producers[key.producer_id]
        return _abort_epoch(state, producer, key.producer_epoch, now_ms=now_ms)
    count = size_of(state, joint).participants
    records = writers_aborted(state, joint, reason=AbortReason.OPERATOR, now_ms=now_ms)
    ended = joint.known.ended(None, now_ms=now_ms)
    return Result(OperatorAbort(participants=count), (*records, ended))


def _fence(
    state: TransactionsState, known: TransactionalId, instance_id: str, *, now_ms: int
) -> Result[OperatorFence, TransactionsRecord]:
    """Take the transactional id, as a new producer instance does that never writes.

    Raises ProducerFencedError for a repeat after another producer has taken it.
    """
    if instance_id == known.instance_id:
        fence = OperatorFence(producer_id=known.producer_id, fenced_epoch=known.init_epoch - 1)
        return Result(fence)
    ongoing = state.ongoing.get(known.producer_id)
    call = InitProducerId(
        transactional_id=known.transactional_id,
        instance_id=instance_id,
        init_number=1,
        timeout_ms=known.timeout_ms,
        # What is prepared is not the operator's to decide: CompletePreparedTxn is.
        keep_prepared=True,
    )
    taken = next_init(state, known, call, now_ms=now_ms)
    fence = OperatorFence(
        producer_id=known.producer_id,
        fenced_epoch=taken.response.producer_epoch - 1,
        participants=0 if ongoing is None else len(ongoing.participants),
    )
    return Result(fence, taken.records)
