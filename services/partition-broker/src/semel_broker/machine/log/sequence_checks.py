"""What one producer may append to one log next: fence, epoch, sequence (protocol.md, section 4).

Theory of operation. Fence, highest epoch and next sequence say what is welcome, as to every
participant: see ``semel_runtime.participant.producer_state``. The last five batches are kept, so
that a repeat is answered with the offset of the original.

Kafka's counterparts are ProducerStateEntry and ProducerAppendInfo. As there, checks never change
anything: ``after_…`` give the next state, to be put in place by replay.
"""

from semel_broker.machine.records import (
    AppendedBatch,
    BatchAppended,
    MarkerAppended,
    ProducerFenced,
    ProducerState,
)
from semel_broker.machine.values import BatchHeader
from semel_common.errors import InvalidTxnStateError, OutOfOrderSequenceNumberError
from semel_common.record_batches.sequence_numbers import next_sequence
from semel_runtime.participant.producer_state import (
    NO_EPOCH,
    REPEATS_KEPT,
    check_epoch,
    check_same,
    check_sequence,
    fence_after,
)

NOTHING_EXPECTED = -1
"""No sequence is taken: whether this epoch wrote here before is not known any more."""


def unknown(log_id: int, producer_id: int) -> ProducerState:
    """Return the state of a producer that was never heard of."""
    return ProducerState(
        log_id=log_id,
        producer_id=producer_id,
        fence=0,
        producer_epoch=NO_EPOCH,
        expected_sequence=0,
        batches=(),
        open_epochs=(),
        last_timestamp_ms=0,
    )


# -- the checks of protocol.md section 4, in their order -----------------------------------------


def repeated(state: ProducerState, batch: BatchHeader) -> AppendedBatch | None:
    """Return the batch of which this one is a repeat (step 2).

    Raises OutOfOrderSequenceNumberError for another batch that was sent under the same sequences.
    """
    if batch.producer_epoch != state.producer_epoch:
        return None
    for known in state.batches:
        if known.base_sequence == batch.base_sequence and known.record_count == batch.record_count:
            check_same(
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                crc32c=batch.crc32c,
                known=known.crc32c,
            )
            return known
    return None


def check_next(state: ProducerState, batch: BatchHeader, *, expiration_ms: int) -> None:
    """Refuse a batch that is not the next one (steps 3 to 5); a new epoch begins at sequence 0.

    Of a producer that is not known, the refusal says for how long producers are remembered: if the
    first attempt of the batch is not that old, it was not appended.
    """
    producer_id, epoch = batch.producer_id, batch.producer_epoch
    if state.producer_epoch == NO_EPOCH and not state.fence and batch.base_sequence:
        raise OutOfOrderSequenceNumberError(
            f"base sequence {batch.base_sequence} of producer {producer_id} in epoch {epoch} is not"
            f" the expected 0: the producer is not known here, or was idle for {expiration_ms} ms"
            " (producer_id_expiration_ms) and is forgotten",
            base_sequence=batch.base_sequence,
            expected_sequence=0,
            producer_id_expiration_ms=expiration_ms,
        )
    check_epoch(producer_id, epoch, fence=state.fence, highest_epoch=state.producer_epoch)
    expected = state.expected_sequence if epoch == state.producer_epoch else 0
    check_sequence(producer_id, epoch, batch.base_sequence, expected=expected)


def check_transaction(state: ProducerState, batch: BatchHeader) -> None:
    """Refuse records outside a transaction while the producer has one open here (step 6)."""
    if state.open_epochs and not batch.transactional:
        raise InvalidTxnStateError(
            f"producer {batch.producer_id} has a transaction open in this partition, "
            f"in epoch {state.open_epochs[-1]}, and sent records outside of it",
            open_epoch=state.open_epochs[-1],
        )


# -- what comes next ------------------------------------------------------------------------------


def after_batch(state: ProducerState, batch: BatchAppended) -> ProducerState:
    """Return the state once a batch was appended."""
    newer = batch.producer_epoch > state.producer_epoch
    opened = batch.transactional and batch.producer_epoch not in state.open_epochs
    appended = AppendedBatch(
        batch.base_sequence, batch.record_count, batch.base_offset, batch.crc32c
    )
    return ProducerState(
        log_id=state.log_id,
        producer_id=state.producer_id,
        fence=state.fence,
        producer_epoch=batch.producer_epoch,
        expected_sequence=next_sequence(batch.base_sequence, batch.record_count),
        batches=(appended,) if newer else (*state.batches[1 - REPEATS_KEPT :], appended),
        open_epochs=(*state.open_epochs, batch.producer_epoch) if opened else state.open_epochs,
        last_timestamp_ms=batch.appended_ms,
    )


def after_marker(state: ProducerState, marker: MarkerAppended) -> ProducerState:
    """Return the state once a transaction got its marker.

    An epoch that was never given out must not lock out valid ones: the fence does not rise above
    the current one, and the highest epoch seen goes back to it. Earlier batches of the current
    epoch are forgotten here, so it writes no more; the next transaction begins at sequence 0.
    """
    epoch, expected, batches = state.producer_epoch, state.expected_sequence, state.batches
    if marker.current_epoch is not None and epoch > marker.current_epoch:
        epoch, expected, batches = marker.current_epoch, NOTHING_EXPECTED, ()
    return ProducerState(
        log_id=state.log_id,
        producer_id=state.producer_id,
        fence=fence_after(state.fence, marker.producer_epoch, current_epoch=marker.current_epoch),
        producer_epoch=epoch,
        expected_sequence=expected,
        batches=batches,
        open_epochs=tuple(e for e in state.open_epochs if e != marker.producer_epoch),
        last_timestamp_ms=marker.appended_ms,
    )


def after_fence(state: ProducerState, fenced: ProducerFenced) -> ProducerState:
    """Return the state once a marker came for a transaction that was not open."""
    return ProducerState(
        log_id=state.log_id,
        producer_id=state.producer_id,
        fence=max(state.fence, fenced.fence),
        producer_epoch=state.producer_epoch,
        expected_sequence=state.expected_sequence,
        batches=state.batches,
        open_epochs=state.open_epochs,
        last_timestamp_ms=fenced.fenced_ms,
    )
