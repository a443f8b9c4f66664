"""The page of a transaction that the history no longer has, or that is too old to know."""

from dataclasses import replace

import pytest
from ended_transactions import ASKED

from aiosemel import (
    KnownOutcome,
    TransactionOutcomeDescription,
)
from semel_console.views.blocks import Notice
from semel_console.views.transaction_view import transaction_page

NO_ENTRY = "The history has no entry of this transaction"


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (KnownOutcome.COMMITTED, ["Yes: it is committed.", NO_ENTRY]),
        (KnownOutcome.ABORTED, ["No: it is aborted", NO_ENTRY]),
        (KnownOutcome.TOO_OLD_TO_KNOW, ["The outcome is too old to know"]),
    ],
)
def test_the_page_says_what_is_not_known_any_more(outcome: KnownOutcome, told: list[str]) -> None:
    asked = replace(
        ASKED,
        outcome=TransactionOutcomeDescription(
            transactional_id="till",
            producer_id=7,
            producer_epoch=3,
            outcome=outcome,
            abort_reason=None,
            is_complete=True,
            current_epoch=300,
            time_left_ms=None,
        ),
    )
    page = transaction_page(asked, 9, "", acts=False)
    notices = [
        block.text for each in page.sections for block in each.blocks if isinstance(block, Notice)
    ]
    assert len(notices) == len(told)
    assert all(map(str.startswith, notices, told))
