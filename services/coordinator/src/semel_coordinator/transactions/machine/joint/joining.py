"""JoinTxn and KeepAliveTxn: a version opens with its first writer, and lasts while kept alive."""

from collections.abc import Sequence

from msgspec import Struct

from semel_common.errors import (
    InvalidRequestError,
    ThrottlingQuotaExceededError,
    TransactionAbortableError,
)
from semel_common.ids import producer_id_of
from semel_coordinator.transactions.machine.capacity import check_room_for_id
from semel_coordinator.transactions.machine.init_producer_id import give_producer_id
from semel_coordinator.transactions.machine.joint.decisions import writers_aborted
from semel_coordinator.transactions.machine.joint.joint_entities import (
    JointId,
    JointKeptAlive,
    JointName,
    JointPoolGrown,
    JointWritersJoined,
)
from semel_coordinator.transactions.machine.joint.joint_state import Joint
from semel_coordinator.transactions.machine.joint.joint_table import (
    JOINT_TABLE,
    JointAnswer,
    refused,
    row_of,
)
from semel_coordinator.transactions.machine.state.entities import Producer, TransactionKey
from semel_coordinator.transactions.machine.state.limits import TransactionLimits
from semel_coordinator.transactions.machine.state.records import TransactionsRecord
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import AbortReason, Outcome
from semel_runtime.machine import Result


class JoinTxn(Struct, frozen=True, kw_only=True):
    """One call."""

    name: JointName
    writer: str
    """Unique in its run and version."""
    timeout_ms: int
    reset: bool = False
    one_shot: bool = False
    principal: str = ""
    """The caller: a new id counts for this principal."""


def join_txn(
    state: TransactionsState,
    limits: TransactionLimits,
    call: JoinTxn,
    *,
    partition: int,
    now_ms: int,
) -> Result[TransactionKey | None, TransactionsRecord]:
    """Answer a writer's transaction; None: the version is committed. See `JOINT_TABLE`."""
    name = call.name
    joint = state.joints.by_id.get(name.transactional_id)
    cell = JOINT_TABLE[row_of(joint, name)]
    answer = cell.reset if call.reset else cell.join
    if answer is JointAnswer.ALREADY_COMMITTED:
        return Result(None)
    if joint is not None and joint.was_aborted(name, call.writer):
        raise _late(name, call.writer)
    if answer is JointAnswer.OPEN_ANEW:
        records = opening(state, limits, call, now_ms=now_ms)
        return _joined(state, limits, call, partition, records, now_ms=now_ms)
    if answer is not JointAnswer.DECIDE:
        raise refused(joint, name, answer)
    assert joint is not None, "an id with an open version is known"
    producer_id = joint.producer_id_of(call.writer)
    if producer_id is not None:  # A repeat.
        return Result(TransactionKey(producer_id, state.producers[producer_id].producer_epoch))
    return _joined(state, limits, call, partition, [], now_ms=now_ms)


def _late(name: JointName, writer: str) -> TransactionAbortableError:
    """Refuse a join that repeats one of an attempt which is aborted: it would begin another one.

    No writer would use it or end it before its time-out, and the next version would wait.
    """
    return TransactionAbortableError(
        f"{name.transactional_id!r}: writer {writer!r} of version {name.txn_version} is aborted",
        outcome=Outcome.ABORTED.value,
    )


def opening(
    state: TransactionsState, limits: TransactionLimits, call: JoinTxn, *, now_ms: int
) -> list[TransactionsRecord]:
    """Return the records that open a version, and fence an open one of an older run or owner."""
    name = call.name
    before = known_for(state, limits, name, call.principal, now_ms=now_ms)
    records = fencing(state, name, now_ms=now_ms)
    opened = before.opened(
        name.txn_version, timeout_ms=call.timeout_ms, one_shot=call.one_shot, now_ms=now_ms
    )
    return [*records, opened]


def fencing(state: TransactionsState, name: JointName, *, now_ms: int) -> list[TransactionsRecord]:
    """Return the records that abort what an older run, or owner, has open."""
    joint = state.joints.by_id.get(name.transactional_id)
    if joint is None:
        return []
    return writers_aborted(state, joint, reason=AbortReason.FENCED, now_ms=now_ms)


def known_for(
    state: TransactionsState,
    limits: TransactionLimits,
    name: JointName,
    principal: str,
    *,
    now_ms: int,
) -> JointId:
    """Return the state of the id, with this call's owner and run in charge.

    An owner that is new finds nothing committed, but the runs before it stay known. Raises
    InvalidRequestError and ThrottlingQuotaExceededError for an id that is new.
    """
    joint = state.joints.by_id.get(name.transactional_id)
    if joint is not None:
        known = joint.known.of_run(name.run)
        if name.owner == known.owner:
            return known
        return JointId(
            transactional_id=name.transactional_id,
            owner=name.owner,
            run=known.run,
            superseded=known.superseded,
            last_update_ms=now_ms,
            principal=known.principal,
        )
    if name.transactional_id in state.transactional_ids:
        raise InvalidRequestError(
            f"{name.transactional_id!r} is the transactional id of a producer: joint transactions"
            " need one of their own",
            field="transactional_id",
        )
    check_room_for_id(state, limits, name.transactional_id, principal)
    return JointId(
        transactional_id=name.transactional_id,
        owner=name.owner,
        run=name.run,
        last_update_ms=now_ms,
        principal=principal,
    )


def keep_alive_txn(
    state: TransactionsState, name: JointName, *, now_ms: int
) -> Result[bool, TransactionsRecord]:
    """Restart the timeout of an open version; True: it is committed, and needs none."""
    joint = state.joints.by_id.get(name.transactional_id)
    answer = JOINT_TABLE[row_of(joint, name)].keep_alive
    if answer is JointAnswer.ALREADY_COMMITTED:
        return Result(response=True)
    if answer is not JointAnswer.DECIDE:
        raise refused(joint, name, answer, reason=reason_of(state, joint))
    record = JointKeptAlive(transactional_id=name.transactional_id, kept_alive_ms=now_ms)
    return Result(response=False, records=(record,))


def reason_of(state: TransactionsState, joint: Joint | None) -> AbortReason | None:
    """Return why the last version aborted, as far as the first writer's transaction tells."""
    if joint is None or joint.is_open or not joint.pool:
        return None
    first = state.producers[joint.pool[0]]
    return first.reason_of(first.producer_epoch - 1)


def _joined(
    state: TransactionsState,
    limits: TransactionLimits,
    call: JoinTxn,
    partition: int,
    before: Sequence[TransactionsRecord],
    *,
    now_ms: int,
) -> Result[TransactionKey, TransactionsRecord]:
    """Give the caller the pool's next producer id; `before`: what has opened the version."""
    name = call.name.transactional_id
    joint = state.joints.by_id.get(name)
    pool = () if joint is None else joint.pool
    place = 0 if joint is None or before else len(joint.live)
    joined = JointWritersJoined(transactional_id=name, writers=(call.writer,))
    if place < len(pool):
        key = _after(before, state.producers[pool[place]])
        return Result(key, (*before, joined))
    if place >= limits.joint_writers_max:
        raise ThrottlingQuotaExceededError(
            f"{name!r}: version {call.name.txn_version} has {place} writers already"
        )
    if state.joints.writer_count >= limits.all_joint_writers_max:
        raise ThrottlingQuotaExceededError(
            f"this coordinator has {state.joints.writer_count} writers of joint transactions"
            " already"
        )
    given = give_producer_id(state, partition)
    producer = Producer(
        producer_id=producer_id_of(partition, given.count),
        transactional_id=name,
        producer_epoch=0,
        last_update_ms=now_ms,
    )
    grown = JointPoolGrown(transactional_id=name, producer_ids=(producer.producer_id,))
    key = TransactionKey(producer.producer_id, producer.producer_epoch)
    return Result(key, (*before, given, producer, grown, joined))


def _after(records: Sequence[TransactionsRecord], producer: Producer) -> TransactionKey:
    """Return a producer's current transaction after records that may have ended the one before."""
    for record in records:
        if isinstance(record, Producer) and record.producer_id == producer.producer_id:
            producer = record
    return TransactionKey(producer.producer_id, producer.producer_epoch)
