"""Fence, epoch and sequence: what a producer may send next."""

import pytest

from semel_common.errors import InvalidProducerEpochError, OutOfOrderSequenceNumberError
from semel_runtime.participant.producer_state import check_epoch, check_sequence, fence_after


def test_an_epoch_at_the_fence_and_not_older_than_the_highest_is_welcome() -> None:
    check_epoch(1, 4, fence=4, highest_epoch=4)
    check_epoch(1, 5, fence=4, highest_epoch=4)


@pytest.mark.parametrize(
    ("fence", "highest_epoch", "complaint"),
    [(4, 0, "3 of producer 1 is below the fence 4"), (0, 4, "3 of producer 1 is older than 4")],
    ids=["outcome known", "older instance"],
)
def test_an_older_epoch_is_refused(fence: int, highest_epoch: int, complaint: str) -> None:
    with pytest.raises(InvalidProducerEpochError, match=complaint):
        check_epoch(1, 3, fence=fence, highest_epoch=highest_epoch)


def test_only_the_expected_sequence_is_welcome() -> None:
    check_sequence(1, 0, 7, expected=7)
    for sequence in (6, 8):
        with pytest.raises(OutOfOrderSequenceNumberError, match="is not the expected 7"):
            check_sequence(1, 0, sequence, expected=7)


@pytest.mark.parametrize(
    ("fence", "current_epoch", "after"),
    [(0, None, 4), (4, None, 4), (9, None, 9), (0, 2, 2), (9, 2, 9)],
)
def test_an_outcome_raises_the_fence_and_never_lowers_it(
    fence: int, current_epoch: int | None, after: int
) -> None:
    assert fence_after(fence, 3, current_epoch=current_epoch) == after
