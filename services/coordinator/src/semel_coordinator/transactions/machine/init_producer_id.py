"""InitProducerId: the owner of a transactional id, and the fencing of the previous one.

Theory of operation. A producer object is an instance with a random id, and its calls are numbered,
so the coordinator tells a delayed or repeated request from a new one: it never takes anything from
a successor. Each new call raises the epoch, and the epoch before it ends aborted, even if no
participant was registered in it; so do prepared transactions, unless the call asks to keep them.
"""

from msgspec import Struct
from msgspec.structs import replace

from semel_common.errors import InvalidTransactionTimeoutError, ProducerFencedError
from semel_common.ids import PRODUCER_IDS_PER_PARTITION, producer_id_of
from semel_coordinator.transactions.machine.capacity import check_room_for_id
from semel_coordinator.transactions.machine.decisions import aborted
from semel_coordinator.transactions.machine.prepared import abort_all
from semel_coordinator.transactions.machine.state.entities import (
    SUPERSEDED_KEPT,
    Producer,
    TransactionalId,
    TransactionKey,
)
from semel_coordinator.transactions.machine.state.limits import TransactionLimits
from semel_coordinator.transactions.machine.state.records import (
    ProducerIdsGiven,
    TransactionsRecord,
)
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import AbortReason
from semel_runtime.machine import Result


class InitProducerId(Struct, frozen=True, kw_only=True):
    """One call for a transactional id."""

    transactional_id: str
    instance_id: str
    """Random, one for each producer object."""
    init_number: int
    """Counts the calls of this instance, from 1."""
    timeout_ms: int
    keep_prepared: bool = False
    """Leave what is prepared to the caller, in place of aborting it."""
    principal: str = ""
    """The caller: a new id counts for this principal."""
    address: str = ""
    """From where it calls; empty: not known."""


def check_timeout(limits: TransactionLimits, timeout_ms: int) -> None:
    """Raise InvalidTransactionTimeoutError if a time-out is not possible."""
    if not 0 < timeout_ms <= limits.transaction_max_timeout_ms:
        raise InvalidTransactionTimeoutError(
            f"transaction_timeout_ms is {timeout_ms}: must be 1 to"
            f" {limits.transaction_max_timeout_ms}",
            field="transaction_timeout_ms",
        )


def give_producer_id(state: TransactionsState, partition: int) -> ProducerIdsGiven:
    """Return the record that gives out the next producer id of a transaction-log partition."""
    given = state.ids_given(partition)
    assert given.count < PRODUCER_IDS_PER_PARTITION, "2^48 ids are more than anyone asks for"
    return replace(given, count=given.count + 1)


def first_init(
    state: TransactionsState,
    limits: TransactionLimits,
    call: InitProducerId,
    *,
    partition: int,
    now_ms: int,
) -> Result[TransactionKey, TransactionsRecord]:
    """Begin a transactional id: a new producer id, epoch 0."""
    check_room_for_id(state, limits, call.transactional_id, call.principal)
    given = give_producer_id(state, partition)
    producer = Producer(
        producer_id=producer_id_of(partition, given.count),
        transactional_id=call.transactional_id,
        producer_epoch=0,
        last_update_ms=now_ms,
    )
    key = TransactionKey(producer.producer_id, producer.producer_epoch)
    return Result(
        key, (given, _in_charge(call, key, superseded=(), principal=call.principal), producer)
    )


def next_init(
    state: TransactionsState, known: TransactionalId, call: InitProducerId, *, now_ms: int
) -> Result[TransactionKey, TransactionsRecord]:
    """Repeat an answer, or raise the epoch.

    Raises ProducerFencedError for a call of an instance that is not in charge any more, or that
    has called again since.
    """
    _check_not_superseded(known, call)
    if call.instance_id == known.instance_id and call.init_number == known.init_number:
        return Result(TransactionKey(known.producer_id, known.init_epoch))
    producer = state.producers[known.producer_id]
    same = call.instance_id == known.instance_id
    reason = AbortReason.CLIENT if same else AbortReason.FENCED
    before: tuple[TransactionsRecord, ...] = ()
    if not call.keep_prepared:
        producer, before = abort_all(state, producer, reason=reason, now_ms=now_ms)
    ongoing = state.ongoing.get(known.producer_id)
    decision = aborted(producer, ongoing, reason=reason, now_ms=now_ms)
    key = TransactionKey(known.producer_id, producer.producer_epoch + 1)
    superseded = known.superseded if same else (known.instance_id, *known.superseded)
    in_charge = _in_charge(
        call, key, superseded=superseded[:SUPERSEDED_KEPT], principal=known.principal
    )
    return Result(key, (*before, *decision, in_charge))


def _check_not_superseded(known: TransactionalId, call: InitProducerId) -> None:
    if call.instance_id in known.superseded:
        raise ProducerFencedError(
            f"{call.transactional_id!r}: a newer producer instance has taken over"
        )
    if call.instance_id == known.instance_id and call.init_number < known.init_number:
        raise ProducerFencedError(
            f"{call.transactional_id!r}: init number {call.init_number} is older than"
            f" {known.init_number}"
        )


def _in_charge(
    call: InitProducerId, key: TransactionKey, *, superseded: tuple[str, ...], principal: str
) -> TransactionalId:
    return TransactionalId(
        transactional_id=call.transactional_id,
        producer_id=key.producer_id,
        timeout_ms=call.timeout_ms,
        instance_id=call.instance_id,
        init_number=call.init_number,
        init_epoch=key.producer_epoch,
        superseded=superseded,
        principal=principal,
        client_address=call.address,
        client_principal=call.principal,
    )
