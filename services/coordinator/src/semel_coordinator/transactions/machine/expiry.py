"""Expiry of idle transactional ids, and of the fences that participants keep.

Theory of operation. A transactional id is idle while no transaction of it is open, prepared, or
waits for markers. Forgetting it forgets its producer id for good, because counters of producer ids
only rise; a client that still uses it is answered INVALID_PRODUCER_ID_MAPPING, and its late writes
are aborted: an inquiry about an unknown producer is answered ABORTED.

An id of joint transactions says which versions are committed, so it stays; the producers of its
pool are forgotten as any others, from the end on, because the first ones are used first. It is
forgotten itself once it has none left, if no version of it is committed, or none can follow.

A participant keeps a producer's fence, so that it takes no late request of a decided epoch, which
the earlier decision would then commit. It may forget the fence once no such decision is left: the
coordinator forgets a decision when all its participants have acknowledged, and from then on a
transaction that opens under that epoch is aborted.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from semel_common.errors import CoordinatorNotAvailableError, NotCoordinatorError, SemelError
from semel_common.ids import Participant
from semel_coordinator.transactions.machine.joint.joint_entities import (
    NO_VERSION,
    JointIdExpired,
    JointPoolShrunk,
)
from semel_coordinator.transactions.machine.joint.joint_state import Joint
from semel_coordinator.transactions.machine.ownership import Ownership
from semel_coordinator.transactions.machine.state.entities import Producer
from semel_coordinator.transactions.machine.state.limits import TransactionLimits
from semel_coordinator.transactions.machine.state.records import (
    TransactionalIdExpired,
    TransactionsRecord,
)
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_runtime.machine import Result

_WRITERS_MAX = 1_000
"""Producers of one id of joint transactions that are forgotten at once."""


class FenceInquiry(Struct, frozen=True, kw_only=True):
    """A producer that a participant wants to forget."""

    producer_id: int
    fence: int
    participant: Participant


class FenceAnswer(Struct, frozen=True, kw_only=True):
    """Whether it may."""

    is_needless: bool = False
    error: SemelError | None = None
    """Why to ask again."""


class IdExpiry:
    """A part of the transactions' machine, over its state."""

    def __init__(
        self, state: TransactionsState, limits: TransactionLimits, ownership: Ownership
    ) -> None:
        """Decide on the state as it is at each call."""
        self._state = state
        self._limits = limits
        self._ownership = ownership

    def producer_ids(self) -> Result[Sequence[int], TransactionsRecord]:
        """Return the producers to be given to `expire_transactional_ids`, in pieces."""
        return Result(list(self._state.producers))

    def expire_transactional_ids(
        self, producer_ids: Iterable[int], *, now_ms: int
    ) -> Result[tuple[str, ...], TransactionsRecord]:
        """Forget those of the producers whose transactional ids are idle; answer the ids."""
        served = filter(self._ownership.serves, producer_ids)
        records = tuple(_expired(self._state, self._limits, served, now_ms=now_ms))
        return Result(tuple(record.transactional_id for record in records), records)

    def joint_ids(self) -> Result[Sequence[str], TransactionsRecord]:
        """Return the ids of joint transactions to be given to `expire_joint_ids`, in pieces."""
        return Result(list(self._state.joints.by_id))

    def expire_joint_ids(
        self, names: Iterable[str], *, now_ms: int
    ) -> Result[tuple[str, ...], TransactionsRecord]:
        """Forget idle producers of those ids, as many as one step may; answer the ids forgotten."""
        served = filter(self._ownership.serves_id, names)
        records = tuple(_joints_expired(self._state, self._limits, served, now_ms=now_ms))
        gone = (record.transactional_id for record in records if isinstance(record, JointIdExpired))
        return Result(tuple(gone), records)

    def inquire_fences(
        self, inquiries: Sequence[FenceInquiry]
    ) -> Result[tuple[FenceAnswer, ...], TransactionsRecord]:
        """Tell participants which producers they may forget.

        Through a commit: a deposed owner may not know of a decision.
        """
        answers = (_answer_fence(self._state, self._ownership, inquiry) for inquiry in inquiries)
        return Result(tuple(answers), verify=True)


def _expired(
    state: TransactionsState,
    limits: TransactionLimits,
    producer_ids: Iterable[int],
    *,
    now_ms: int,
) -> Iterator[TransactionalIdExpired]:
    """Yield the transactional ids, of those producers that are still there, that are forgotten."""
    for producer_id in producer_ids:
        producer = state.producers.get(producer_id)
        if producer is not None and _is_expired(state, limits, producer, now_ms):
            yield TransactionalIdExpired(
                transactional_id=producer.transactional_id, producer_id=producer_id
            )


def _is_expired(
    state: TransactionsState, limits: TransactionLimits, producer: Producer, now_ms: int
) -> bool:
    return producer.transactional_id not in state.joints.by_id and _is_idle(
        state, limits, producer, now_ms
    )


def _is_idle(
    state: TransactionsState, limits: TransactionLimits, producer: Producer, now_ms: int
) -> bool:
    if now_ms - producer.last_update_ms < limits.transactional_id_expiration_ms:
        return False
    producer_id = producer.producer_id
    is_open = producer_id in state.ongoing or bool(producer.prepared)
    return not is_open and not state.incomplete_count(producer_id)


def _joints_expired(
    state: TransactionsState, limits: TransactionLimits, names: Iterable[str], *, now_ms: int
) -> Iterator[JointPoolShrunk | JointIdExpired]:
    """Yield what is forgotten of those ids of joint transactions that are still there."""
    for name in names:
        joint = state.joints.by_id.get(name)
        if joint is None:
            continue
        idle = tuple(_idle_writers(state, limits, joint, now_ms))
        if idle:
            yield JointPoolShrunk(transactional_id=name, producer_ids=idle)
        if len(idle) == len(joint.pool) and _is_joint_id_expired(limits, joint, now_ms):
            yield JointIdExpired(transactional_id=name)


def _idle_writers(
    state: TransactionsState, limits: TransactionLimits, joint: Joint, now_ms: int
) -> Iterator[int]:
    """Yield the producer ids at the end of the pool that are forgotten now, the last one first."""
    not_live = joint.pool[len(joint.live) :]
    for producer_id in islice(reversed(not_live), _WRITERS_MAX):
        if not _is_idle(state, limits, state.producers[producer_id], now_ms):
            break
        yield producer_id


def _is_joint_id_expired(limits: TransactionLimits, joint: Joint, now_ms: int) -> bool:
    known = joint.known
    is_needless = known.one_shot or known.committed_version == NO_VERSION
    idle_ms = now_ms - known.last_update_ms
    return not joint.is_open and is_needless and idle_ms >= limits.transactional_id_expiration_ms


def _answer_fence(
    state: TransactionsState, ownership: Ownership, inquiry: FenceInquiry
) -> FenceAnswer:
    try:
        ownership.check_producer_id(inquiry.producer_id)
    except (NotCoordinatorError, CoordinatorNotAvailableError) as error:
        return FenceAnswer(error=error)
    return FenceAnswer(
        is_needless=not any(
            decided.producer_epoch < inquiry.fence and inquiry.participant in decided.committing
            for decided in state.incomplete_of(inquiry.producer_id)
        )
    )
