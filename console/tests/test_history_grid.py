"""The table of the history names the program that wrote, and who ended it by hand."""

from dataclasses import replace

import pytest
from ended_transactions import ENDED

from aiosemel import (
    AbortReason,
    EndedTransaction,
    KnownOutcome,
    TransactionClient,
    TransactionOperator,
)
from semel_console.views.history_view import history_grid


@pytest.mark.parametrize(
    ("reason", "by_hand"), [("its host is lost", "ada: its host is lost"), ("", "ada")]
)
def test_a_row_names_the_program_and_who_ended_it_by_hand(reason: str, by_hand: str) -> None:
    grid = history_grid([ended(reason)])
    shown = dict(zip(grid.headings, (each.text for each in grid.rows[0].cells), strict=True))
    assert shown["Written by"] == "billing-3 as User:billing at 10.0.0.7"
    assert shown["Ended by hand"] == by_hand


def ended(reason: str) -> EndedTransaction:
    return replace(
        ENDED,
        outcome=KnownOutcome.ABORTED,
        abort_reason=AbortReason.OPERATOR,
        client=TransactionClient(
            name=f"billing-3-{7:032x}", address="10.0.0.7", principal="User:billing"
        ),
        operator=TransactionOperator(name="ada", reason=reason, principal="User:ada", address=""),
    )
