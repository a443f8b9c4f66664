"""What a producer may send to a participant next (protocol.md, section 4, steps 2 to 5). Pure.

Three numbers say what is welcome. The fence is the lowest epoch whose outcome is not known here
yet; it rises with every outcome, and nothing below it may write. The highest epoch seen refuses
what an older instance still has on its way. Within that epoch sequences are dense, from 0, so that
everything is taken once and in its place.
"""

from semel_common.errors import InvalidProducerEpochError, OutOfOrderSequenceNumberError

NO_EPOCH = -1
"""The highest epoch of a producer that has written nothing."""

REPEATS_KEPT = 5
"""As many requests as a producer may have unacknowledged: a repeat is one of the last so many."""


def check_epoch(producer_id: int, producer_epoch: int, *, fence: int, highest_epoch: int) -> None:
    """Refuse an epoch whose outcome is known (step 3), or that is older than the newest (step 4).

    Raises InvalidProducerEpochError.
    """
    if producer_epoch < fence:
        raise InvalidProducerEpochError(
            f"producer epoch {producer_epoch} of producer {producer_id} is below the fence {fence}",
            producer_epoch=producer_epoch,
            fence=fence,
        )
    if producer_epoch < highest_epoch:
        raise InvalidProducerEpochError(
            f"producer epoch {producer_epoch} of producer {producer_id} "
            f"is older than {highest_epoch}",
            producer_epoch=producer_epoch,
            current_epoch=highest_epoch,
        )


def check_sequence(
    producer_id: int, producer_epoch: int, base_sequence: int, *, expected: int
) -> None:
    """Refuse a sequence that is not the next (step 5). Raises OutOfOrderSequenceNumberError."""
    if base_sequence != expected:
        raise OutOfOrderSequenceNumberError(
            f"base sequence {base_sequence} of producer {producer_id} in epoch {producer_epoch} "
            f"is not the expected {expected}",
            base_sequence=base_sequence,
            expected_sequence=expected,
        )


def check_same(
    producer_id: int, producer_epoch: int, base_sequence: int, *, crc32c: int, known: int | None
) -> None:
    """Refuse an append whose sequence another append has taken, so it is no repeat (step 2).

    ``known`` is the CRC-32C of that append; None: it is not known. Raises
    OutOfOrderSequenceNumberError.
    """
    if known is not None and crc32c != known:
        raise OutOfOrderSequenceNumberError(
            f"base sequence {base_sequence} of producer {producer_id} in epoch {producer_epoch} "
            f"was used for something else: its CRC-32C is {known:#010x}, that of this request is "
            f"{crc32c:#010x}; two producers have one id, or a producer did not repeat what it sent",
            base_sequence=base_sequence,
            crc32c=crc32c,
            known_crc32c=known,
        )


def fence_after(fence: int, producer_epoch: int, *, current_epoch: int | None = None) -> int:
    """Return the fence after the outcome of an epoch; it never goes back.

    ``current_epoch`` is given if the coordinator never gave ``producer_epoch`` out: then that is
    what the producer is really at, and it must not be locked out.
    """
    return max(fence, producer_epoch + 1 if current_epoch is None else current_epoch)
