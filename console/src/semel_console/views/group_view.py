"""Consumer groups: members, offsets, lag, and offsets that transactions hold back. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aiosemel import (
    GroupDescription,
    GroupListing,
    MemberDescription,
    PendingOffsets,
    TopicPartition,
    TransactionOutcomeDescription,
)
from semel_console.insight.command_lines import command_line
from semel_console.insight.offset_views import GroupOffset
from semel_console.insight.texts import ago_text, counted, since_text, time_text
from semel_console.views import places
from semel_console.views.blocks import (
    Bar,
    Block,
    Cell,
    Chart,
    Column,
    Columns,
    Facts,
    Field,
    Form,
    Grid,
    Missing,
    Notice,
    Page,
    Row,
    Section,
    Tone,
    badge,
    cell,
    link,
)
from semel_console.views.paging import fitting
from semel_console.views.states import age, group_state

GROUPS_MAX = 200
OFFSETS_MAX = 200
_BARS = 12
_AWAY = -2
"""The member epoch of a static member that has left for a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedGroup:
    """What the cluster answered about a group."""

    described: GroupDescription
    offsets: Sequence[GroupOffset] | Missing
    held_back: Mapping[TopicPartition, int] | Missing
    """Records behind the last stable offset, of each partition that has any."""
    transactions: Mapping[tuple[int, int], TransactionOutcomeDescription | Missing]
    """Of pending offsets, by producer id and epoch."""
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The offsets of all partitions, also of those whose brokers did not answer."""
    missing: Sequence[Missing] = ()
    """The brokers that did not answer."""


def groups_page(listed: Sequence[GroupListing] | Missing, text: str, after: str) -> Page:
    """Return one page of the groups whose ids contain a text, by id."""
    command = command_line("groups", "list")
    form = Form(action="/groups", fields=(Field(name="q", label="Group contains", value=text),))
    if isinstance(listed, Missing):
        blocks: Sequence[Block] = (listed,)
        return Page(
            title="Groups",
            command=command,
            form=form,
            sections=(Section(title="", blocks=blocks),),
        )
    found = [each for each in listed if text in each.group_id and each.group_id > after]
    lines = [
        Row(
            cells=(
                link(each.group_id, places.group(each.group_id)),
                group_state(each.state),
                cell(each.member_count),
            )
        )
        for each in found[:GROUPS_MAX]
    ]
    rows = fitting(lines, GROUPS_MAX)
    grid = Grid(
        headings=("Group", "State", "Members"),
        numbers=frozenset({2}),
        rows=rows,
        empty="No group has such an id." if text else "There is no group yet.",
    )
    more = None
    if len(found) > len(rows):
        last = found[len(rows) - 1].group_id
        more = link("More", places.address("/groups", q=text or None, after=last))
    return Page(
        title="Groups",
        command=command,
        form=form,
        sections=(Section(title="", blocks=(grid,)),),
        more=more,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LagSample:
    """How far a group was at one moment, in records."""

    at_ms: int
    lag: int
    held_back: int
    """The records behind the last stable offset."""


def sample_of(asked: AskedGroup, now_ms: int) -> LagSample | None:
    """Return how far the group is now; None: that is not known."""
    if isinstance(asked.offsets, Missing) or isinstance(asked.held_back, Missing) or asked.missing:
        return None
    return LagSample(
        at_ms=now_ms,
        lag=sum(each.lag for each in asked.offsets),
        held_back=sum(asked.held_back.values()),
    )


def _over_time(samples: Sequence[LagSample]) -> Sequence[Section]:
    """Return the plot of the lag; none of a single look."""
    if len(samples) <= 1:
        return ()
    columns = [
        Column(
            label=(time_text(each.at_ms) or "")[11:19],
            parts=((each.lag, Tone.PLAIN), (each.held_back, Tone.WARN)),
            text=f"{counted(each.lag, 'visible record')}, {each.held_back} behind the LSO",
        )
        for each in samples
    ]
    plot = Columns(
        caption="Visible records to read at the last looks (UTC), and above them records behind"
        " the last stable offset",
        columns=columns,
    )
    return (Section(title="Lag over time", blocks=(plot,)),)


def group_page(asked: AskedGroup, now_ms: int, samples: Sequence[LagSample] = ()) -> Page:
    """Return a group: how far it really is, and what holds it up."""
    described = asked.described
    return Page(
        title=described.group_id,
        command=command_line("groups", "describe", names=(described.group_id,)),
        trail=(link("Groups", "/groups"),),
        notices=_lag_notices(asked, now_ms),
        form=Form(
            action="/why",
            kept=(("group", described.group_id),),
            fields=(Field(name="topic", label="Topic", value=_first_topic(asked)),),
            button="Why does it not see records?",
        ),
        sections=(
            Section(
                title="",
                blocks=(
                    Facts(
                        pairs=(
                            ("State", group_state(described.state)),
                            ("Members", cell(len(described.members))),
                            ("Epoch", cell(described.group_epoch)),
                            ("Assignor", cell(described.assignor)),
                        )
                    ),
                ),
            ),
            Section(title="Offsets and lag", blocks=_offsets(asked, now_ms)),
            *_over_time(samples),
            Section(title="Members", blocks=(_members(described.members),)),
            Section(
                title="Offsets that open transactions hold",
                blocks=(_pending(described.pending, asked, now_ms),),
            ),
        ),
    )


def _first_topic(asked: AskedGroup) -> str:
    """Return a topic that the group reads; empty: none is known."""
    for member in asked.described.members:
        for topic in member.subscribed_topics:
            return topic
    offsets = () if isinstance(asked.offsets, Missing) else asked.offsets
    return offsets[0].partition.topic if offsets else ""


def _lag_notices(asked: AskedGroup, now_ms: int) -> Sequence[Notice]:
    if isinstance(asked.offsets, Missing):
        return ()
    if not asked.offsets:
        none = Notice(text="It has committed no offset yet, so its lag is not known.")
        return () if asked.missing else (none,)
    lag = sum(each.lag for each in asked.offsets)
    visible = f"It has {counted(lag, 'visible record')} to read"
    if asked.missing:
        visible += f" in {len(asked.offsets)} of {counted(len(asked.committed), 'partition')}"
    oldest = [each.oldest_ms for each in asked.offsets if each.oldest_ms is not None]
    visible += f"; the oldest is from {since_text(min(oldest), now_ms)}." if oldest else "."
    notices = [Notice(text=visible, tone=Tone.WARN if lag else Tone.GOOD)]
    if not isinstance(asked.held_back, Missing) and (held := sum(asked.held_back.values())):
        more = "more lies" if held == 1 else "more lie"
        text = (
            f"{counted(held, 'record')} {more} behind the last stable offset, which open"
            " transactions hold."
        )
        notices.append(Notice(text=text, tone=Tone.WARN))
    return notices


def _offsets(asked: AskedGroup, now_ms: int) -> Sequence[Block]:
    if isinstance(asked.offsets, Missing):
        return (asked.offsets,)
    held_back = _behind(asked)
    holders = {at: member for member in asked.described.members for at in member.assignment}
    known = {each.partition: each for each in asked.offsets}
    committed = {**asked.committed, **{at: each.committed for at, each in known.items()}}
    rows = [
        _offset(at, committed.get(at), known.get(at), holders.get(at), held_back.get(at), now_ms)
        for at in sorted({*committed, *holders})[:OFFSETS_MAX]
    ]
    grid = Grid(
        headings=(
            *("Partition", "Committed", "LSO", "Lag", "Oldest unread", "Behind the LSO"),
            "Member",
        ),
        numbers=frozenset({1, 2, 3, 4, 5}),
        rows=fitting(rows, OFFSETS_MAX),
        empty="The group has committed no offset.",
    )
    lagging = [each for each in asked.offsets if each.lag]
    missing = [*asked.missing]
    if isinstance(asked.held_back, Missing):
        missing.append(asked.held_back)
    if len(lagging) <= 1:
        return (*missing, grid)
    return (*missing, _chart(lagging), grid)


def _behind(asked: AskedGroup) -> Mapping[TopicPartition, int]:
    """Return the records behind the last stable offset of each partition, where that is known."""
    if isinstance(asked.offsets, Missing) or isinstance(asked.held_back, Missing):
        return {}
    return {each.partition: asked.held_back.get(each.partition, 0) for each in asked.offsets}


def _chart(lagging: Sequence[GroupOffset]) -> Chart:
    most = sorted(lagging, key=lambda each: (-each.lag, each.partition))[:_BARS]
    return Chart(
        caption="Visible records to read, by partition",
        bars=[
            Bar(
                label=str(each.partition),
                value=each.lag,
                text=counted(each.lag, "record"),
                href=places.messages(each.partition, start=each.committed),
            )
            for each in most
        ],
    )


def _offset(
    at: TopicPartition,
    committed: int | None,
    offset: GroupOffset | None,
    member: MemberDescription | None,
    held_back: int | None,
    now_ms: int,
) -> Row:
    age = None if offset is None else since_text(offset.oldest_ms, now_ms)
    return Row(
        cells=(
            link(str(at), places.partition(at)),
            cell(None)
            if committed is None
            else link(committed, places.messages(at, start=committed)),
            cell(None if offset is None else offset.stable_end),
            cell(None if offset is None else offset.lag, _tone(offset)),
            cell(age),
            cell(held_back, Tone.WARN if held_back else Tone.MUTED),
            cell(None if member is None else member.member_id),
        )
    )


def _tone(offset: GroupOffset | None) -> Tone:
    return Tone.WARN if offset is not None and offset.lag else Tone.PLAIN


def _members(members: Sequence[MemberDescription]) -> Grid:
    return Grid(
        headings=(
            *("Member", "Instance", "Epoch", "Subscribed to", "Holds", "Is to hold"),
            *("Who", "From", "Heard of", "Polled"),
        ),
        rows=[
            Row(
                cells=(
                    cell(member.member_id),
                    cell(member.group_instance_id),
                    _epoch(member),
                    cell(", ".join(member.subscribed_topics)),
                    cell(" ".join(map(str, member.assignment))),
                    cell(" ".join(map(str, member.target))),
                    cell(member.principal),
                    cell(member.address),
                    cell(ago_text(member.heartbeat_age_ms)),
                    cell(ago_text(member.poll_age_ms)),
                )
            )
            for member in members
        ],
        empty="The group has no member.",
    )


def _epoch(member: MemberDescription) -> Cell:
    if member.member_epoch == _AWAY:
        return badge("away", Tone.WARN)
    return cell(member.member_epoch)


def _pending(pending: Sequence[PendingOffsets], asked: AskedGroup, now_ms: int) -> Grid:
    return Grid(
        headings=("Transaction", "Open for", "Offsets"),
        rows=[
            Row(
                cells=(
                    _transaction(each, asked),
                    age(each.start_time_ms, now_ms),
                    cell(", ".join(f"{at}: {offset}" for at, offset in each.offsets.items())),
                )
            )
            for each in pending
        ],
        empty="No open transaction holds an offset of this group.",
    )


def _transaction(each: PendingOffsets, asked: AskedGroup) -> Cell:
    known = asked.transactions.get((each.producer_id, each.producer_epoch))
    if isinstance(known, TransactionOutcomeDescription) and known.transactional_id:
        text = f"{known.transactional_id}, epoch {each.producer_epoch}"
        page = places.transaction(known.transactional_id, each.producer_epoch, each.producer_id)
        return link(text, page)
    return cell(f"producer id {each.producer_id}, epoch {each.producer_epoch}")
