"""EndJointTxn: one decision for all writers of a version."""

from msgspec import Struct
from msgspec.structs import replace

from semel_common.ids import Participant
from semel_coordinator.transactions.machine.capacity import no_room
from semel_coordinator.transactions.machine.decisions import aborted, committed
from semel_coordinator.transactions.machine.end_txn import check_incomplete
from semel_coordinator.transactions.machine.joint.decisions import (
    dead_writer,
    is_live,
    writers_aborted,
)
from semel_coordinator.transactions.machine.joint.joining import fencing, known_for, reason_of
from semel_coordinator.transactions.machine.joint.joint_entities import (
    JointEnd,
    JointEnded,
    JointName,
)
from semel_coordinator.transactions.machine.joint.joint_state import Joint
from semel_coordinator.transactions.machine.joint.joint_table import (
    JOINT_TABLE,
    JointAnswer,
    refused,
    row_of,
)
from semel_coordinator.transactions.machine.state.entities import (
    NOBODY,
    ParticipantSet,
    TransactionKey,
    in_order,
)
from semel_coordinator.transactions.machine.state.limits import TransactionLimits
from semel_coordinator.transactions.machine.state.records import TransactionsRecord
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import AbortReason, Outcome
from semel_runtime.machine import Result


class EndJointTxn(Struct, frozen=True, kw_only=True):
    """One call."""

    name: JointName
    commit: bool
    writers: dict[TransactionKey, ParticipantSet]
    """Those whose records commit, with exactly these participants; of an abort, those to be told
    besides the registered ones."""
    end_id: str
    """Random; a repeat has the same."""
    traceparent: str = ""
    principal: str = ""
    """The caller: a new id counts for this principal."""

    @property
    def end(self) -> JointEnd:
        """The decision, once it is taken as asked for."""
        return JointEnd(
            end_id=self.end_id,
            owner=self.name.owner,
            run=self.name.run,
            txn_version=self.name.txn_version,
            outcome=Outcome.COMMITTED if self.commit else Outcome.ABORTED,
        )


def end_joint_txn(
    state: TransactionsState, limits: TransactionLimits, call: EndJointTxn, *, now_ms: int
) -> Result[JointEnded, TransactionsRecord]:
    """Decide a version as it is asked for, or say how it stands. See `JOINT_TABLE`."""
    joint = state.joints.by_id.get(call.name.transactional_id)
    known = None if joint is None else joint.end_of(call.end)
    if known is not None:
        return Result(JointEnded(outcome=known.outcome, already_committed=known.already_committed))
    cell = JOINT_TABLE[row_of(joint, call.name)]
    answer = cell.commit if call.commit else cell.abort
    if answer is JointAnswer.ALREADY_COMMITTED:
        assert joint is not None, "an id with a committed version is known"
        return _already_committed(joint, call)
    commits_empty = answer in (JointAnswer.COMMIT_EMPTY, JointAnswer.COMMIT_NEW)
    if answer is JointAnswer.ABORT_EMPTY or (commits_empty and not call.writers):
        return Result(
            JointEnded(outcome=call.end.outcome), _end_empty(state, limits, call, now_ms=now_ms)
        )
    if answer not in (JointAnswer.DECIDE, JointAnswer.NOTE):
        raise refused(joint, call.name, answer, reason=reason_of(state, joint))
    assert joint is not None, "an id with an open version is known"
    if answer is JointAnswer.NOTE:
        return Result(JointEnded(outcome=Outcome.ABORTED), (joint.with_end(call.end),))
    decide = _commit_records if call.commit else _abort_records
    records = decide(state, limits, joint, call, now_ms=now_ms)
    ended = joint.known.ended(call.end, now_ms=now_ms)
    return Result(JointEnded(outcome=call.end.outcome), (*records, ended))


def _already_committed(joint: Joint, call: EndJointTxn) -> Result[JointEnded, TransactionsRecord]:
    """Say so, and keep whom it was said to.

    A run that commits its version again, by another call, has not written what that call is about.
    """
    if not call.commit or call.name.txn_version != joint.known.committed_version:
        return Result(JointEnded(outcome=Outcome.COMMITTED, already_committed=True))
    if joint.has_committed(call.end):
        return Result(
            JointEnded(outcome=Outcome.COMMITTED, already_committed=True, repeated_in_run=True)
        )
    kept = joint.with_end(replace(call.end, already_committed=True))
    return Result(JointEnded(outcome=Outcome.COMMITTED, already_committed=True), (kept,))


def _end_empty(
    state: TransactionsState, limits: TransactionLimits, call: EndJointTxn, *, now_ms: int
) -> list[TransactionsRecord]:
    """End a version without writers; an older run's open version is fenced."""
    known = known_for(state, limits, call.name, call.principal, now_ms=now_ms)
    records = fencing(state, call.name, now_ms=now_ms)
    return [*records, known.ended(call.end, now_ms=now_ms)]


def _commit_records(
    state: TransactionsState,
    limits: TransactionLimits,
    joint: Joint,
    call: EndJointTxn,
    *,
    now_ms: int,
) -> list[TransactionsRecord]:
    """Commit for the writers named, and abort for all others.

    Raises TransactionAbortableError, a definite abort, if one of them is not live;
    ConcurrentTransactionsError and ThrottlingQuotaExceededError past the limits.
    """
    for key in call.writers:
        if not is_live(state, joint, key):
            raise dead_writer(state, joint, key)
    _check_room(state, limits, call)
    records: list[TransactionsRecord] = []
    for producer_id in joint.live:
        producer = state.producers[producer_id]
        ongoing = state.ongoing.get(producer_id)
        named = call.writers.get(TransactionKey(producer_id, producer.producer_epoch))
        if named is None:
            records += aborted(producer, ongoing, reason=AbortReason.CLIENT, now_ms=now_ms)
            continue
        registered = NOBODY if ongoing is None else ongoing.participants.keys()
        records += committed(
            producer,
            ongoing,
            committing=named,
            aborting=in_order(each for each in registered if each not in named),
            traceparent=call.traceparent,
            now_ms=now_ms,
        )
    return records


def _abort_records(
    state: TransactionsState,
    limits: TransactionLimits,
    joint: Joint,
    call: EndJointTxn,
    *,
    now_ms: int,
) -> list[TransactionsRecord]:
    """Abort for all writers. Never refused: past the limits, those only named ask themselves."""
    live = {key: those for key, those in call.writers.items() if is_live(state, joint, key)}
    named = [each for those in live.values() for each in those]
    full = no_room(state, limits, participants=named, begins=len(live))
    return writers_aborted(
        state,
        joint,
        reason=AbortReason.CLIENT,
        named=None if full else {key.producer_id: those for key, those in live.items()},
        traceparent=call.traceparent,
        now_ms=now_ms,
    )


def _check_room(state: TransactionsState, limits: TransactionLimits, call: EndJointTxn) -> None:
    new: list[Participant] = []
    begins = 0
    for (producer_id, _), named in call.writers.items():
        check_incomplete(state, limits, state.producers[producer_id])
        ongoing = state.ongoing.get(producer_id)
        registered = NOBODY if ongoing is None else ongoing.participants.keys()
        new += [each for each in named if each not in registered]
        begins += not registered and bool(named)
    full = no_room(state, limits, participants=new, begins=begins) if new else None
    if full is not None:
        raise full
