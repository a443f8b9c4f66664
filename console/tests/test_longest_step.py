"""The time of a transaction's program hides no slow marker, on the page of an ended transaction."""

from dataclasses import replace

import pytest
from ended_transactions import ENDED

from aiosemel import (
    EndedParticipant,
    TopicPartition,
    TransactionOperator,
)
from semel_console.views.blocks import Grid, Notice, Tone, cell
from semel_console.views.ended_view import ended_sections

BEGAN_MS = 1_700_000_000_000
AT = TopicPartition("orders", 0)


def test_a_slow_marker_is_named_behind_a_long_transaction() -> None:
    notices, marked = shown(decided_ms=60_000, marker_ms=63_000, completed_ms=63_001)
    [whole, late] = notices
    assert whole.startswith("The longest step: 1 min 0 s of 1 min 3 s (95 %), from")
    assert whole.endswith("from “registered with its coordinator” to “decided”.")
    assert late.startswith("After the decision, the longest step: 3.0 s of 3.0 s (99 %), from")
    assert late.endswith("from “decided” to “marker of orders-0”.")
    assert marked == ["marker of orders-0"]


def test_a_slow_marker_behind_a_short_transaction_is_named_once() -> None:
    notices, marked = shown(decided_ms=10, marker_ms=3_010, completed_ms=3_010)
    assert len(notices) == 1
    assert "to “marker of orders-0”." in notices[0]
    assert marked == ["marker of orders-0"]


def test_an_end_without_a_slow_step_has_none_marked() -> None:
    notices, marked = shown(decided_ms=60_000, marker_ms=60_000, completed_ms=60_000)
    assert notices[1] == "After the decision, all steps lie within one millisecond."
    assert marked == []


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [("its host is lost", "The reason: its host is lost"), ("", "No reason was given.")],
)
def test_who_ended_it_by_hand_is_told_also_without_a_reason(reason: str, sentence: str) -> None:
    operator = TransactionOperator(
        name="console", reason=reason, principal="User:ada", address="10.0.0.7"
    )
    notices, _ = shown(decided_ms=1, marker_ms=1, completed_ms=1, operator=operator)
    assert notices[0].startswith("Ended by hand: console (User:ada) from 10.0.0.7, ")
    assert notices[0].endswith(sentence)


def shown(
    *,
    decided_ms: int,
    marker_ms: int,
    completed_ms: int,
    operator: TransactionOperator | None = None,
) -> tuple[list[str], list[str]]:
    """Return the sentences of a page, and the steps that it marks; times are from the begin on."""
    participant = EndedParticipant(
        partition=AT, group_id=None, commits=True, marker_time_ms=BEGAN_MS + marker_ms
    )
    ended = replace(
        ENDED,
        start_time_ms=BEGAN_MS,
        decided_time_ms=BEGAN_MS + decided_ms,
        completed_time_ms=BEGAN_MS + completed_ms,
        participants=(participant,),
        participant_count=1,
        operator=operator,
    )
    blocks = [block for each in ended_sections(ended, cell(None), {}) for block in each.blocks]
    steps = next(each for each in blocks if isinstance(each, Grid))
    return (
        [each.text for each in blocks if isinstance(each, Notice)],
        [row.cells[1].text for row in steps.rows if row.tone is Tone.WARN],
    )
