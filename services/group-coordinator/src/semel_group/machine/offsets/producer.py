"""What one producer may commit to one group next (protocol.md, section 4, steps 2 to 5).

To a producer, a group is one more log, in which each TxnOffsetCommit takes one sequence. Without
sequences, a late repeat of an older commit would move the group back within the transaction.
"""

from msgspec.structs import replace

from semel_common.errors import InvalidProducerEpochError, OutOfOrderSequenceNumberError
from semel_group.machine.records import ProducerState, TransactionNeverGiven
from semel_group.machine.values import Transaction

NO_EPOCH = -1
NO_SEQUENCE = -1

COMMITS_KEPT = 5
"""As many commits as a producer may have unacknowledged in a group."""


def unknown_producer(group_id: str, producer_id: int) -> ProducerState:
    """Return the state of a producer that was never heard of."""
    return ProducerState(
        group_id=group_id,
        producer_id=producer_id,
        fence=0,
        producer_epoch=NO_EPOCH,
        last_sequence=NO_SEQUENCE,
    )


def is_repeat(state: ProducerState, transaction: Transaction, base_sequence: int) -> bool:
    """Whether a commit is one of the last five of its epoch (step 2)."""
    return (
        transaction.producer_epoch == state.producer_epoch
        and 0 <= state.last_sequence - base_sequence < COMMITS_KEPT
    )


def check_next(state: ProducerState, transaction: Transaction, base_sequence: int) -> None:
    """Refuse a commit that is not the next one (steps 3 to 5).

    Raises InvalidProducerEpochError and OutOfOrderSequenceNumberError.
    """
    producer_id, epoch = transaction
    lowest = max(state.fence, state.producer_epoch)
    if epoch < lowest:
        raise InvalidProducerEpochError(
            f"producer epoch {epoch} of producer {producer_id} is older than {lowest}",
            producer_epoch=epoch,
            current_epoch=lowest,
        )
    expected = state.last_sequence + 1 if epoch == state.producer_epoch else 0
    if base_sequence != expected:
        raise OutOfOrderSequenceNumberError(
            f"base sequence {base_sequence} of producer {producer_id} in epoch {epoch} "
            f"is not the expected {expected}",
            base_sequence=base_sequence,
            expected_sequence=expected,
        )


def after_commit(state: ProducerState, epoch: int, base_sequence: int) -> ProducerState:
    """Return the state once a commit was taken."""
    return ProducerState(
        group_id=state.group_id,
        producer_id=state.producer_id,
        fence=state.fence,
        producer_epoch=epoch,
        last_sequence=base_sequence,
    )


def after_end(state: ProducerState, epoch: int) -> ProducerState:
    """Return the state once a transaction got its outcome."""
    return ProducerState(
        group_id=state.group_id,
        producer_id=state.producer_id,
        fence=max(state.fence, epoch + 1),
        producer_epoch=state.producer_epoch,
        last_sequence=state.last_sequence,
    )


def after_never_given(
    state: ProducerState, ended: TransactionNeverGiven, *, last_sequence: int
) -> ProducerState:
    """Return the state once an epoch turned out to be made up.

    It must not lock out the epochs that are real: the highest epoch seen goes back to the current
    one, whose last commit here has ``last_sequence``. The fence never goes back: what raised it was
    a marker of a real epoch.
    """
    fence = max(state.fence, ended.current_epoch)
    if state.producer_epoch <= ended.current_epoch:
        return replace(state, fence=fence)
    return replace(
        state,
        fence=fence,
        producer_epoch=ended.current_epoch,
        last_sequence=last_sequence,
    )
