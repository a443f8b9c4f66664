"""Topics and partitions: offsets, leaders, holders of last stable offsets. No I/O."""

from collections.abc import Mapping, Sequence

from aiosemel import PartitionDescription, TopicDescription, TopicPartition
from semel_console.insight.command_lines import command_line
from semel_console.insight.holders import Holder
from semel_console.insight.offset_views import Watermarks
from semel_console.insight.texts import counted, duration_text
from semel_console.views import places
from semel_console.views.blocks import (
    NOTHING,
    Bar,
    Block,
    Cell,
    Chart,
    Facts,
    Field,
    Form,
    Grid,
    Missing,
    Page,
    Row,
    Section,
    Tone,
    cell,
    link,
)
from semel_console.views.paging import fitting

TOPICS_MAX = 200
PARTITIONS_MAX = 100
_BARS = 12
"""The bars of a chart, the largest first; the table below has all partitions of the page."""


def topics_page(listed: Sequence[TopicDescription] | Missing, text: str, after: str) -> Page:
    """Return one page of the topics whose names contain a text, by name."""
    command = command_line("topics", "list")
    form = Form(action="/topics", fields=(Field(name="q", label="Name contains", value=text),))
    if isinstance(listed, Missing):
        return Page(
            title="Topics",
            command=command,
            form=form,
            sections=(Section(title="", blocks=(listed,)),),
        )
    found = [topic for topic in listed if text in topic.name and topic.name > after]
    lines = [
        Row(
            cells=(
                link(topic.name, places.topic(topic.name)),
                cell(len(topic.partitions)),
                cell(", ".join(f"{name}={value}" for name, value in topic.configs.items())),
            )
        )
        for topic in found[:TOPICS_MAX]
    ]
    rows = fitting(lines, TOPICS_MAX)
    grid = Grid(
        headings=("Topic", "Partitions", "Options"),
        numbers=frozenset({1}),
        rows=rows,
        empty="No topic has such a name." if text else "There is no topic yet.",
    )
    more = None
    if len(found) > len(rows):
        last = found[len(rows) - 1].name
        more = link("More", places.address("/topics", q=text or None, after=last))
    return Page(
        title="Topics",
        command=command,
        form=form,
        sections=(Section(title="", blocks=(grid,)),),
        more=more,
    )


def topic_page(
    topic: TopicDescription,
    shown: Sequence[PartitionDescription],
    marks: Mapping[int, Watermarks],
    holders: Mapping[int, Holder | Missing],
    missing: Sequence[Missing],
) -> Page:
    """Return a topic, with some of its partitions."""
    behind = {
        number: each.end - each.stable_end
        for number, each in marks.items()
        if each.end > each.stable_end
    }
    blocks: list[Block] = [*missing]
    if behind:
        blocks.append(_waiting(topic.name, behind))
    if ages := _holders_ages(topic.name, holders):
        blocks.append(ages)
    grid = _partitions(topic.name, shown, marks, holders)
    blocks.append(grid)
    facts = Facts(
        pairs=(
            ("Topic id", cell(topic.topic_id)),
            ("Partitions", cell(len(topic.partitions))),
            ("Records as they come", link("follow", places.tail(topic.name))),
            *((name, cell(value)) for name, value in topic.configs.items()),
        )
    )
    more = None
    if shown and (last := shown[len(grid.rows) - 1].partition) < len(topic.partitions) - 1:
        more = link("More partitions", places.address("/topic", name=topic.name, after=last))
    return Page(
        title=topic.name,
        command=command_line("topics", "describe", names=(topic.name,)),
        trail=(link("Topics", "/topics"),),
        sections=(
            Section(title="", blocks=(facts,)),
            Section(title="Partitions and their last stable offsets", blocks=blocks),
        ),
        more=more,
    )


def _waiting(topic: str, behind: Mapping[int, int]) -> Chart:
    return Chart(
        caption="Offsets behind the last stable offset: readers of committed records wait there"
        + _largest(len(behind)),
        bars=[
            Bar(
                label=f"partition {number}",
                value=count,
                text=counted(count, "offset"),
                href=places.partition(TopicPartition(topic, number)),
                tone=Tone.WARN,
            )
            for number, count in sorted(behind.items(), key=lambda item: (-item[1], item[0]))[
                :_BARS
            ]
        ],
    )


def _holders_ages(topic: str, holders: Mapping[int, Holder | Missing]) -> Chart | None:
    """Return for how long each last stable offset has been held; None: none is held."""
    held = sorted(
        (-each.age_ms, number) for number, each in holders.items() if isinstance(each, Holder)
    )
    if not held:
        return None
    return Chart(
        caption="Age of each last stable offset: how long its holder has been open"
        + _largest(len(held)),
        bars=[
            Bar(
                label=f"partition {number}",
                value=-minus_ms,
                text=duration_text(-minus_ms),
                href=places.partition(TopicPartition(topic, number)),
                tone=Tone.WARN,
            )
            for minus_ms, number in held[:_BARS]
        ],
    )


def _largest(count: int) -> str:
    return f" (the {_BARS} largest of {count})" if count > _BARS else ""


def _partitions(
    topic: str,
    shown: Sequence[PartitionDescription],
    marks: Mapping[int, Watermarks],
    holders: Mapping[int, Holder | Missing],
) -> Grid:
    rows = []
    for each in shown:
        at = TopicPartition(topic, each.partition)
        known = marks.get(each.partition)
        moving = None if each.moving_to is None else f"broker-{each.moving_to}"
        rows.append(
            Row(
                cells=(
                    link(each.partition, places.partition(at)),
                    cell(f"broker-{each.leader_id}"),
                    cell(moving, Tone.WARN),
                    *_offsets(known),
                    holder_cell(known, holders.get(each.partition)),
                    link("records", places.messages(at)),
                )
            )
        )
    return Grid(
        headings=("Partition", "Leader", "Moving to", "Start", "LSO", "End", "Held by", "See"),
        numbers=frozenset({3, 4, 5}),
        rows=fitting(rows, PARTITIONS_MAX),
    )


def _offsets(known: Watermarks | None) -> tuple[Cell, Cell, Cell]:
    if known is None:
        return NOTHING, NOTHING, NOTHING
    tone = Tone.WARN if known.end > known.stable_end else Tone.PLAIN
    return cell(known.start), cell(known.stable_end, tone), cell(known.end)


def holder_cell(known: Watermarks | None, holder: Holder | Missing | None) -> Cell:
    """Return the holder of a last stable offset, or the word for none."""
    if known is None:
        return NOTHING
    if isinstance(holder, Missing):
        return cell(holder.why, Tone.BAD)
    if holder is None:
        if known.end > known.stable_end:
            return cell("see the partition", Tone.WARN)
        return cell("no transaction holds it", Tone.MUTED)
    text = f"{holder.name}: {holder.how_long}"
    if not holder.transactional_id:
        return cell(text, Tone.WARN)
    return Cell(
        text=text,
        href=places.transaction(holder.transactional_id, holder.producer_epoch, holder.producer_id),
        tone=Tone.WARN,
    )
