"""Why a consumer sees no records, partition by partition. No I/O."""

from collections.abc import Mapping

from aiosemel import ReaderCause, ReaderStanding, TopicPartition
from semel_console.insight.command_lines import command_line
from semel_console.insight.reader_causes import verdict
from semel_console.views import places
from semel_console.views.blocks import (
    Cell,
    Field,
    Form,
    Grid,
    Missing,
    Notice,
    Page,
    Row,
    Section,
    Tone,
    cell,
    link,
)
from semel_console.views.paging import fitting

_NO_SUCH_PLACE = (ReaderCause.NO_TOPIC, ReaderCause.NO_PARTITION)
"""Then the partition has no page that a link could lead to."""
PARTITIONS_MAX = 8
"""Of one page: each needs several answers of its broker and of its group's coordinator."""


def why_page(
    group_id: str,
    topic: str,
    standings: Mapping[TopicPartition, ReaderStanding | Missing],
    *,
    only: int | None = None,
    goes_on: bool = False,
) -> Page:
    """Return the first cause that holds for each partition, and its remedy.

    ``only``: the one partition that the page is about. ``goes_on``: the topic has more partitions
    than these.
    """
    form = Form(
        action="/why",
        fields=(
            Field(name="group", label="Group", value=group_id),
            Field(name="topic", label="Topic", value=topic),
        ),
        button="Why?",
    )
    place = topic if only is None else f"{topic}:{only}"
    rows = [_row(at, standing) for at, standing in standings.items()]
    sections: tuple[Section, ...] = ()
    if rows:
        grid = Grid(
            headings=("Partition", "The first cause that holds", "What to do", "Transaction"),
            rows=fitting(rows, PARTITIONS_MAX),
        )
        sections = (Section(title="", blocks=(grid,)),)
    return Page(
        title="Why does my consumer not see records?",
        command=command_line("why", names=(group_id, place)) if rows else "",
        form=form,
        sections=sections,
        notices=() if rows else (Notice(text="Give a group and a topic."),),
        trail=(link("Groups", "/groups"),),
        more=_more(group_id, topic, max(at.partition for at in standings)) if goes_on else None,
    )


def _more(group_id: str, topic: str, last: int) -> Cell:
    href = places.address("/why", group=group_id, topic=topic, after=last)
    return link(f"The next {PARTITIONS_MAX} partitions", href)


def _row(at: TopicPartition, standing: ReaderStanding | Missing) -> Row:
    place = link(str(at), places.partition(at))
    if isinstance(standing, Missing):
        return Row(cells=(place, cell(standing.why, Tone.BAD), cell(None), cell(None)))
    if standing.cause in _NO_SUCH_PLACE:
        place = cell(str(at))
    words = verdict(standing)
    tone = Tone.GOOD if standing.cause is ReaderCause.ALL_READ else Tone.WARN
    return Row(cells=(place, cell(words.says, tone), cell(words.do), _transaction(standing)))


def _transaction(standing: ReaderStanding) -> Cell:
    holder = standing.holder
    if holder is None or not holder.transactional_id:
        return cell(None)
    name = f"{holder.transactional_id}, epoch {holder.producer_epoch}"
    page = places.transaction(holder.transactional_id, holder.producer_epoch, holder.producer_id)
    return link(name, page)
