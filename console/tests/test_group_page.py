"""A number that is not known looks different from zero on the page of a group."""

from dataclasses import replace

import pytest

from aiosemel import GroupDescription, GroupState, MemberDescription, TopicPartition
from semel_console.insight.offset_views import GroupOffset
from semel_console.views.blocks import Grid, Missing, Page
from semel_console.views.group_view import AskedGroup, group_page, sample_of

OFFSET = GroupOffset(
    partition=TopicPartition("orders", 0), committed=3, stable_end=3, lag=0, oldest_ms=None
)
READ, NEW = TopicPartition("orders", 0), TopicPartition("orders", 1)
AWAY = Missing(what="The number of records behind the LSO", why="broker-0 does not answer")


@pytest.mark.parametrize(("held_back", "shown"), [({}, "0"), ({READ: 7}, "7"), (AWAY, "-")])
def test_records_behind_the_last_stable_offset_are_unknown_without_an_answer(
    held_back: dict[TopicPartition, int] | Missing, shown: str
) -> None:
    page = page_of(OFFSET, held_back, now_ms=1)
    assert column(page, "Behind the LSO") == {"orders-0": shown, "orders-1": "-"}


@pytest.mark.parametrize(
    ("oldest_ms", "now_ms", "age"),
    [(1_000, 4_500, "3.5 s ago"), (9_000, 4_500, "0 ms ago"), (None, 4_500, "")],
)
def test_the_age_of_the_oldest_unread_record_is_shown(
    oldest_ms: int | None, now_ms: int, age: str
) -> None:
    offset = replace(OFFSET, lag=2, oldest_ms=oldest_ms)
    page = page_of(offset, {}, now_ms=now_ms)
    assert column(page, "Oldest unread") == {"orders-0": age or "-", "orders-1": "-"}
    told = f"It has 2 visible records to read{age and f'; the oldest is from {age}'}."
    assert page.notices[0].text == told


def test_a_group_that_has_committed_nothing_says_so() -> None:
    page = page_of(None, {}, now_ms=1)
    [notice] = page.notices
    assert notice.text == "It has committed no offset yet, so its lag is not known."
    assert column(page, "Lag") == {"orders-0": "-", "orders-1": "-"}


def test_a_broker_that_is_away_leaves_the_lag_on_the_others() -> None:
    asked = AskedGroup(
        described=described(),
        offsets=[replace(OFFSET, lag=2)],
        committed={READ: 3, NEW: 8},
        missing=[replace(AWAY, what="The lag on broker-1")],
        held_back={},
        transactions={},
    )
    page = group_page(asked, now_ms=1)
    assert page.notices[0].text == "It has 2 visible records to read in 1 of 2 partitions."
    assert column(page, "Committed") == {"orders-0": "3", "orders-1": "8"}
    assert column(page, "Lag") == {"orders-0": "2", "orders-1": "-"}
    shown = [block for each in page.sections for block in each.blocks if block in asked.missing]
    assert shown == asked.missing
    assert sample_of(asked, 1) is None, "a plot of parts would go down where a broker goes away"


def page_of(
    offset: GroupOffset | None, held_back: dict[TopicPartition, int] | Missing, *, now_ms: int
) -> Page:
    offsets = [] if offset is None else [offset]
    asked = AskedGroup(described=described(), offsets=offsets, held_back=held_back, transactions={})
    return group_page(asked, now_ms=now_ms)


def described() -> GroupDescription:
    member = MemberDescription(
        member_id="m",
        group_instance_id="",
        member_epoch=1,
        subscribed_topics=("orders",),
        assignment=(READ, NEW),
        target=(READ, NEW),
    )
    return GroupDescription(
        group_id="g",
        state=GroupState.STABLE,
        group_epoch=1,
        assignor="uniform",
        members=(member,),
        pending=(),
    )


def column(page: Page, heading: str) -> dict[str, str]:
    """Return the texts of a column, by partition."""
    (grid,) = (
        block
        for section in page.sections
        for block in section.blocks
        if isinstance(block, Grid) and heading in block.headings
    )
    at = grid.headings.index(heading)
    return {row.cells[0].text: row.cells[at].text for row in grid.rows}
