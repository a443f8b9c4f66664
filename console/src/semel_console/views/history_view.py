"""Transactions that have ended: how many committed and aborted, and why. No I/O."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from aiosemel import AbortReason, EndedTransaction, KnownOutcome, TransactionHistory
from semel_console.insight.command_lines import command_line
from semel_console.insight.ended_writes import lasted_ms
from semel_console.insight.texts import counted, duration_text, time_text
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

ROWS_MAX = 100
COUNTED_MAX = 2_000
"""The transactions that one page counts and draws."""
HOUR_MS = 3_600_000
HOURS = 24
ANY = "any"
OUTCOMES = (ANY, KnownOutcome.COMMITTED.value, KnownOutcome.ABORTED.value)
REASONS = (ANY, *(reason.value for reason in AbortReason))


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedHistory:
    """What the address asks for."""

    outcome: str = ANY
    reason: str = ANY
    prefix: str = ""
    topic: str = ""
    group: str = ""
    behind: str = ""
    """Where the page before has ended; empty: this is the first page."""


def history_page(history: TransactionHistory | Missing, wanted: WantedHistory, now_ms: int) -> Page:
    """Return the history: counts and plots on its first page, then the list."""
    sections: list[Section] = []
    more = None
    if isinstance(history, Missing):
        sections.append(Section(title="", blocks=(history,)))
    else:
        if not wanted.behind:
            sections += _summary(history, now_ms)
        ended = history.transactions
        grid = history_grid(ended)
        sections.append(Section(title="The last ones", blocks=(grid,)))
        if len(grid.rows) < len(ended) or history.behind:
            more = _more(ended[len(grid.rows) - 1], wanted)
    return Page(
        title="History",
        command=_command(wanted),
        form=_form(wanted),
        sections=sections,
        more=more,
        trail=(link("Transactions", "/transactions"),),
    )


def _summary(history: TransactionHistory, now_ms: int) -> Sequence[Section]:
    ended = history.transactions
    bound = f" The last {COUNTED_MAX:,} are counted." if history.behind else ""
    aborted = [each for each in ended if each.outcome is KnownOutcome.ABORTED]
    committed = len(ended) - len(aborted)
    reasons = Counter(_reason(each) for each in aborted)
    blocks: list[Block] = [
        Notice(
            text=f"{counted(committed, 'transaction')} committed and"
            f" {len(aborted)} aborted in the last day.{bound}",
            tone=Tone.WARN if aborted else Tone.GOOD,
        )
    ]
    if aborted:
        blocks.append(
            Chart(
                caption="Aborted, by reason",
                bars=[
                    Bar(
                        label=reason,
                        value=count,
                        text=counted(count, "transaction"),
                        href=places.address("/history", outcome="ABORTED", reason=reason)
                        if reason in REASONS
                        else "",
                        tone=Tone.BAD,
                    )
                    for reason, count in reasons.most_common()
                ],
            )
        )
    if ended:
        blocks += [_hours(ended, now_ms), *_latencies(ended)]
    return (Section(title="", blocks=blocks),)


def _reason(each: EndedTransaction) -> str:
    return "unknown" if each.abort_reason is None else each.abort_reason.value


def _hours(ended: Sequence[EndedTransaction], now_ms: int) -> Columns:
    """Return how many committed and aborted in each of the last 24 hours."""
    last = now_ms // HOUR_MS
    committed: Counter[int] = Counter()
    aborted: Counter[int] = Counter()
    for each in ended:
        hour = (each.completed_time_ms or 0) // HOUR_MS
        (aborted if each.outcome is KnownOutcome.ABORTED else committed)[hour] += 1
    columns = [
        Column(
            label=(time_text(hour * HOUR_MS) or "")[11:16],
            parts=((committed[hour], Tone.PLAIN), (aborted[hour], Tone.BAD)),
            text=f"{committed[hour]} committed, {aborted[hour]} aborted",
        )
        for hour in range(last - HOURS + 1, last + 1)
    ]
    return Columns(
        caption="Transactions that ended in each hour (UTC): committed, and above them aborted",
        columns=columns,
    )


def _latencies(ended: Sequence[EndedTransaction]) -> Sequence[Block]:
    """Return how long the last step took: from the decision until all markers were written."""
    spans = sorted(
        each.completed_time_ms - each.decided_time_ms
        for each in ended
        if each.completed_time_ms and each.decided_time_ms
    )
    if not spans:
        return ()
    shares = (("half of them within", 0.5), ("95 % within", 0.95), ("99 % within", 0.99))
    pairs = [
        (name, cell(duration_text(spans[int(share * (len(spans) - 1))]))) for name, share in shares
    ]
    return (
        Notice(text="From the decision until every participant had written its marker:"),
        Facts(pairs=(*pairs, ("the longest", cell(duration_text(spans[-1]))))),
    )


def outcome_badge(each: EndedTransaction) -> Cell:
    """Return how a transaction ended."""
    tone = Tone.BAD if each.outcome is KnownOutcome.ABORTED else Tone.GOOD
    return badge(each.outcome.value, tone)


def history_grid(ended: Sequence[EndedTransaction]) -> Grid:
    """Return as many transactions that have ended as one page has."""
    return Grid(
        headings=(
            *("Completed", "Transactional id", "Epoch", "Outcome", "Reason", "Lasted", "Wrote to"),
            *("Written by", "Ended by hand"),
        ),
        numbers=frozenset({2, 5}),
        rows=fitting([_row(each) for each in ended[:ROWS_MAX]], ROWS_MAX),
        empty="No such transaction ended in the last day.",
    )


def _row(each: EndedTransaction) -> Row:
    operator = each.operator
    by_hand = ""
    if operator is not None:
        why = f": {operator.reason}" if operator.reason else ""
        by_hand = f"{operator.name or operator.principal}{why}"
    count = counted(each.participant_count, "partition or group")
    if each.participant_count != 1:
        count = f"{each.participant_count} partitions and groups"
    return Row(
        cells=(
            cell(time_text(each.completed_time_ms or 0)),
            cell(each.transactional_id),
            link(
                each.producer_epoch,
                places.transaction(
                    each.transactional_id,
                    each.producer_epoch,
                    None if each.txn_version is None else each.producer_id,
                ),
            ),
            outcome_badge(each),
            cell(each.abort_reason),
            cell(lasted(each)),
            cell(count),
            cell(None if each.client is None else str(each.client)),
            cell(by_hand),
        )
    )


def lasted(each: EndedTransaction) -> str | None:
    """Return how long a transaction lasted, as far as its coordinator knows."""
    passed_ms = lasted_ms(each)
    return None if passed_ms is None else duration_text(passed_ms)


def _more(last: EndedTransaction, wanted: WantedHistory) -> Cell:
    href = places.address(
        "/history",
        outcome=wanted.outcome,
        reason=wanted.reason,
        transactional_id=wanted.prefix or None,
        topic=wanted.topic or None,
        group=wanted.group or None,
        behind=last.position,
    )
    return link("Earlier ones", href)


def _form(wanted: WantedHistory) -> Form:
    return Form(
        action="/history",
        fields=(
            Field(
                name="outcome",
                label="Outcome",
                value=wanted.outcome,
                choices=[(each, each) for each in OUTCOMES],
            ),
            Field(
                name="reason",
                label="Reason of an abort",
                value=wanted.reason,
                choices=[(each, each) for each in REASONS],
            ),
            Field(
                name="transactional_id", label="Transactional id begins with", value=wanted.prefix
            ),
            Field(name="topic", label="Wrote to topic", value=wanted.topic),
            Field(name="group", label="Committed offsets of group", value=wanted.group),
        ),
    )


def _command(wanted: WantedHistory) -> str:
    given = (
        ("--outcome", "" if wanted.outcome == ANY else wanted.outcome.lower()),
        ("--reason", "" if wanted.reason == ANY else wanted.reason.lower()),
        ("--id-prefix", wanted.prefix),
        ("--topic", wanted.topic),
        ("--group", wanted.group),
        ("--behind", wanted.behind),
    )
    words = [word for option, value in given if value for word in (option, value)]
    return command_line("transactions", "history", *words)
