"""Claims of journals: whether a journal has everything that a mark names."""

import pytest

from semel_common.wire.messages.request_bounds import CLAIMS_MAX
from semel_runtime.claims import ClaimHistory, JournalClaim, JournalMark, missing


def claim(claim_epoch: int, claim_token: str, start_offset: int) -> JournalClaim:
    return JournalClaim(claim_epoch=claim_epoch, claim_token=claim_token, start_offset=start_offset)


def mark(claim_epoch: int, claim_token: str, end_offset: int) -> JournalMark:
    return JournalMark(claim_epoch=claim_epoch, claim_token=claim_token, end_offset=end_offset)


HISTORY = ClaimHistory(claims=(claim(4, "d", 10), claim(5, "e", 20), claim(7, "g", 30)))
END = 40


@pytest.mark.parametrize(
    ("known", "lacks"),
    [
        (mark(7, "g", 40), ""),
        (mark(7, "g", 41), "ends at offset 40, not at 41"),
        (mark(7, "", 40), ""),
        (mark(7, "x", 31), "another process had claim epoch 7"),
        (mark(5, "e", 30), ""),
        (mark(5, "e", 31), "ends at offset 30, not at 31"),
        (mark(5, "x", 25), "another process had claim epoch 5"),
        (mark(8, "h", 40), "it has never had claim epoch 8"),
        # Claims of a release that keeps no history, or of long ago.
        (mark(6, "f", 30), ""),
        (mark(6, "f", 31), "ends at offset 30, not at 31"),
        (mark(1, "a", 10), ""),
        (mark(1, "a", 11), "ends at offset 10, not at 11"),
    ],
)
def test_a_journal_has_what_a_mark_says_or_lacks_it(known: JournalMark, lacks: str) -> None:
    found = missing(HISTORY, known, end_offset=END)
    assert lacks in found
    assert bool(found) is bool(lacks)


def test_marks_from_before_a_recovery_count_no_longer() -> None:
    recovered = ClaimHistory(claims=(claim(1000, "r", 20),), recovered_epoch=1000)
    assert not missing(recovered, mark(9, "i", 99), end_offset=20)
    assert missing(recovered, mark(1000, "r", 99), end_offset=20)
    assert missing(recovered, mark(1001, "s", 5), end_offset=20)


def test_a_history_keeps_its_last_claims_and_each_once() -> None:
    history = ClaimHistory()
    for epoch in range(1, CLAIMS_MAX + 4):
        history = history.with_claim(claim(epoch, "x", epoch))
        assert history.with_claim(claim(epoch, "x", epoch)) is history
    assert [each.claim_epoch for each in history.claims] == list(range(4, CLAIMS_MAX + 4))
    assert history.is_in_order


def test_a_history_out_of_order_is_told_from_one_in_order() -> None:
    assert not ClaimHistory(claims=(claim(2, "b", 1), claim(2, "b", 2))).is_in_order
    assert not ClaimHistory(claims=(claim(1, "a", 2), claim(2, "b", 1))).is_in_order
