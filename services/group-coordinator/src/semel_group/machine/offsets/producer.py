"""What one producer may commit to one group next (protocol.md, section 4, steps 2 to 5).

To a producer, a group is one more log, in which each TxnOffsetCommit takes one sequence. Without
sequences, a late repeat of an older commit would move the group back within the transaction.
"""

from msgspec.structs import replace

from semel_group.machine.records import ProducerState, TransactionNeverGiven
from semel_group.machine.values import Transaction
from semel_runtime.participant.producer_state import (
    NO_EPOCH,
    REPEATS_KEPT,
    check_epoch,
    check_same,
    check_sequence,
    fence_after,
)

NO_SEQUENCE = -1
"""The last sequence of a producer that has committed nothing."""


def unknown_producer(group_id: str, producer_id: int) -> ProducerState:
    """Return the state of a producer that was never heard of."""
    return ProducerState(
        group_id=group_id,
        producer_id=producer_id,
        fence=0,
        producer_epoch=NO_EPOCH,
        last_sequence=NO_SEQUENCE,
        last_ended_ms=0,
    )


def is_repeat(
    state: ProducerState, transaction: Transaction, base_sequence: int, *, crc32c: int
) -> bool:
    """Whether a commit is one of the last five of its epoch (step 2).

    Raises OutOfOrderSequenceNumberError for another commit that was sent under the same sequence.
    """
    back = state.last_sequence - base_sequence
    if transaction.producer_epoch != state.producer_epoch or not 0 <= back < REPEATS_KEPT:
        return False
    known = state.crc32cs[-1 - back] if back < len(state.crc32cs) else None
    check_same(*transaction, base_sequence, crc32c=crc32c, known=known)
    return True


def check_next(state: ProducerState, transaction: Transaction, base_sequence: int) -> None:
    """Refuse a commit that is not the next one (steps 3 to 5).

    Raises InvalidProducerEpochError and OutOfOrderSequenceNumberError.
    """
    producer_id, epoch = transaction
    check_epoch(producer_id, epoch, fence=state.fence, highest_epoch=state.producer_epoch)
    expected = state.last_sequence + 1 if epoch == state.producer_epoch else 0
    check_sequence(producer_id, epoch, base_sequence, expected=expected)


def after_commit(
    state: ProducerState, epoch: int, base_sequence: int, crc32c: int | None
) -> ProducerState:
    """Return the state once a commit was taken."""
    before = state.crc32cs[1 - REPEATS_KEPT :] if epoch == state.producer_epoch else ()
    return ProducerState(
        group_id=state.group_id,
        producer_id=state.producer_id,
        fence=state.fence,
        producer_epoch=epoch,
        last_sequence=base_sequence,
        last_ended_ms=state.last_ended_ms,
        crc32cs=() if crc32c is None else (*before, crc32c),
    )


def after_end(state: ProducerState, epoch: int, ended_ms: int) -> ProducerState:
    """Return the state once a transaction got its outcome."""
    return ProducerState(
        group_id=state.group_id,
        producer_id=state.producer_id,
        fence=fence_after(state.fence, epoch),
        producer_epoch=state.producer_epoch,
        last_sequence=state.last_sequence,
        last_ended_ms=ended_ms,
        crc32cs=state.crc32cs,
    )


def after_never_given(
    state: ProducerState, ended: TransactionNeverGiven, *, last_sequence: int
) -> ProducerState:
    """Return the state once an epoch turned out to be made up.

    It must not lock out the epochs that are real: the highest epoch seen goes back to the current
    one, whose last commit here has ``last_sequence``. The fence never goes back: what raised it was
    a marker of a real epoch.
    """
    fence = fence_after(state.fence, ended.producer_epoch, current_epoch=ended.current_epoch)
    if state.producer_epoch <= ended.current_epoch:
        return replace(state, fence=fence, last_ended_ms=ended.ended_ms)
    return replace(
        state,
        fence=fence,
        producer_epoch=ended.current_epoch,
        last_sequence=last_sequence,
        last_ended_ms=ended.ended_ms,
        crc32cs=(),
    )
