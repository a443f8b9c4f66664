"""The page of a transaction that the history no longer has, or that is too old to know."""

import pytest

from aiosemel import (
    KnownOutcome,
    TransactionalIdDescription,
    TransactionHistory,
    TransactionOutcomeDescription,
)
from semel_console.views.blocks import Notice
from semel_console.views.transaction_view import Asked, transaction_page
from semel_console.views.unfinished_view import Told

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
    asked = Asked(
        transactional_id="till",
        described=TransactionalIdDescription(
            transactional_id="till",
            producer_id=7,
            producer_epoch=300,
            transaction_timeout_ms=60_000,
            transactions=(),
        ),
        epoch=3,
        producer_id=None,
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
        history=TransactionHistory(transactions=(), behind=None),
        told=Told(),
        ended_writes={},
    )
    page = transaction_page(asked, 9, "", acts=False)
    notices = [
        block.text for each in page.sections for block in each.blocks if isinstance(block, Notice)
    ]
    assert len(notices) == len(told)
    assert all(map(str.startswith, notices, told))
