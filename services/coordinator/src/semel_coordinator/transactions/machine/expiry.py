"""Forgetting: transactional ids that nobody uses, and what participants keep of their producers.

Theory of operation. A transactional id is idle while no transaction of it is open, prepared, or
waits for markers. Forgetting it forgets its producer id for good, because counters of producer ids
only rise; whoever still holds it is answered INVALID_PRODUCER_ID_MAPPING, and what it has written
meanwhile somewhere is aborted: an inquiry about a producer that is not known is answered ABORTED.

A participant keeps a producer's fence, so that nothing late of a decided epoch is taken up again
and then committed by the decision of then. It may forget the fence once no such decision is left:
a decision is forgotten when everyone in it has acknowledged, and from then on, whatever is opened
under that epoch is aborted.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from semel_common.errors import CoordinatorNotAvailableError, NotCoordinatorError, SemelError
from semel_common.ids import Participant
from semel_coordinator.transactions.machine.entities import Producer
from semel_coordinator.transactions.machine.limits import TransactionLimits
from semel_coordinator.transactions.machine.ownership import Ownership
from semel_coordinator.transactions.machine.records import TransactionalIdExpired
from semel_coordinator.transactions.machine.state import TransactionsState


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


def expired(
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
    if producer.transactional_id in state.joints.by_id:
        return False  # Its versions say what was done before: those ids do not expire.
    if now_ms - producer.last_update_ms < limits.transactional_id_expiration_ms:
        return False
    producer_id = producer.producer_id
    is_open = producer_id in state.ongoing or bool(producer.prepared)
    return not is_open and not state.incomplete_count(producer_id)


def answer_fences(
    state: TransactionsState, ownership: Ownership, inquiries: Sequence[FenceInquiry]
) -> tuple[FenceAnswer, ...]:
    """Answer each inquiry."""
    return tuple(_answer_fence(state, ownership, each) for each in inquiries)


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
