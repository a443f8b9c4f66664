"""A number that is not known looks different from zero on the page of a group."""

import pytest

from aiosemel import GroupDescription, GroupState, MemberDescription, TopicPartition
from semel_console.insight.offset_views import GroupOffset
from semel_console.views.blocks import Grid, Missing
from semel_console.views.group_view import AskedGroup, group_page

READ, NEW = TopicPartition("orders", 0), TopicPartition("orders", 1)
AWAY = Missing(what="The number of records behind the LSO", why="broker-0 does not answer")


@pytest.mark.parametrize(("held_back", "shown"), [({}, "0"), ({READ: 7}, "7"), (AWAY, "-")])
def test_records_behind_the_last_stable_offset_are_unknown_without_an_answer(
    held_back: dict[TopicPartition, int] | Missing, shown: str
) -> None:
    member = MemberDescription(
        member_id="m",
        group_instance_id="",
        member_epoch=1,
        subscribed_topics=("orders",),
        assignment=(READ, NEW),
        target=(READ, NEW),
    )
    described = GroupDescription(
        group_id="g",
        state=GroupState.STABLE,
        group_epoch=1,
        assignor="uniform",
        members=(member,),
        pending=(),
    )
    asked = AskedGroup(
        described=described,
        offsets=[GroupOffset(partition=READ, committed=3, stable_end=3, lag=0)],
        held_back=held_back,
        transactions={},
    )
    (grid,) = (
        block
        for section in group_page(asked, now_ms=1).sections
        for block in section.blocks
        if isinstance(block, Grid) and "Behind the LSO" in block.headings
    )
    behind = grid.headings.index("Behind the LSO")
    texts = {row.cells[0].text: row.cells[behind].text for row in grid.rows}
    assert texts == {"orders-0": shown, "orders-1": "-"}
