"""The list of transactions: the open ones first, the oldest at the top. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

from aiosemel import TransactionListing, TransactionOrder, TransactionState
from semel_console.insight.command_lines import command_line
from semel_console.insight.texts import duration_text
from semel_console.views import places
from semel_console.views.blocks import (
    Bar,
    Cell,
    Chart,
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
from semel_console.views.states import age, seen, transaction_state

PAGE_ROWS = 100
OPEN = "open"
EVERY = "any"
OPEN_STATES = (
    TransactionState.ONGOING,
    TransactionState.PREPARED,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
)
CHOICES = (
    OPEN,
    EVERY,
    *(state.value for state in TransactionState if state is not TransactionState.UNKNOWN),
)
_BARS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the address asks for."""

    state: str
    """One of ``CHOICES``."""
    text: str
    """A part of the transactional id; empty: any id."""
    after: str
    """Where the page before has ended; empty: this is the first page."""


def states_of(state: str) -> tuple[TransactionState, ...]:
    """Return the states that a choice stands for; none stands for any."""
    if state == OPEN:
        return OPEN_STATES
    return () if state == EVERY else (TransactionState(state),)


def order_of(state: str) -> TransactionOrder:
    """Return the order of a list: open ones by age, the oldest first; others by id."""
    return TransactionOrder.OLDEST_FIRST if state == OPEN else TransactionOrder.BY_ID


def list_page(listed: Sequence[TransactionListing] | Missing, wanted: Wanted, now_ms: int) -> Page:
    """Return one page of the list: ``listed`` has a line more if the list goes on."""
    blocks: list[Grid | Chart | Missing] = []
    more = None
    if isinstance(listed, Missing):
        blocks.append(listed)
    else:
        if chart := _ages(listed, now_ms):
            blocks.append(chart)
        rows = fitting([_row(entry, now_ms) for entry in listed], PAGE_ROWS)
        blocks.append(_grid(rows))
        if len(rows) < len(listed):
            more = _more(listed[len(rows) - 1].position, wanted)
    return Page(
        title="Transactions",
        command=_command(wanted),
        form=_form(wanted),
        sections=(Section(title="", blocks=blocks),),
        more=more,
    )


def _grid(rows: Sequence[Row]) -> Grid:
    return Grid(
        headings=(
            *("Transactional id", "State", "Age, of its time-out", "Producer id", "Epoch"),
            *("Markers missing", "Joint writers"),
        ),
        numbers=frozenset({3, 4, 5, 6}),
        rows=rows,
        empty="No transaction is in this state.",
    )


def _row(entry: TransactionListing, now_ms: int) -> Row:
    return Row(
        cells=(
            link(entry.transactional_id, _page_for(entry)),
            transaction_state(entry.state),
            _age(entry, now_ms),
            cell(entry.producer_id or None),
            cell(entry.producer_epoch if entry.producer_id else None),
            seen(entry.incomplete_transactions),
            cell(entry.joint_writers or None),
        )
    )


def _page_for(entry: TransactionListing) -> str:
    epoch = entry.producer_epoch if entry.producer_id and entry.state in OPEN_STATES else None
    return places.transaction(entry.transactional_id, epoch)


def _age(entry: TransactionListing, now_ms: int) -> Cell:
    limit_ms = entry.transaction_timeout_ms if entry.state is TransactionState.ONGOING else None
    return age(entry.start_time_ms, now_ms, of_ms=limit_ms)


def _ages(rows: Sequence[TransactionListing], now_ms: int) -> Chart | None:
    """Return how old the oldest open transactions are; None for a single one, or none."""
    began = [
        (entry, now_ms - entry.start_time_ms)
        for entry in rows
        if entry.start_time_ms and entry.state in OPEN_STATES
    ][:_BARS]
    if len(began) <= 1:
        return None
    return Chart(
        caption="Age of the oldest open transactions on this page",
        bars=[
            Bar(
                label=entry.transactional_id,
                value=max(0, age_ms),
                text=duration_text(max(0, age_ms)),
                href=_page_for(entry),
                tone=_urgency(entry, age_ms),
            )
            for entry, age_ms in began
        ],
    )


def _urgency(entry: TransactionListing, age_ms: int) -> Tone:
    if entry.state is not TransactionState.ONGOING:
        return Tone.WARN
    return Tone.BAD if age_ms > 0.8 * entry.transaction_timeout_ms else Tone.PLAIN


def _more(after: str, wanted: Wanted) -> Cell:
    href = places.address(
        "/transactions", state=wanted.state, transactional_id=wanted.text or None, after=after
    )
    return link("More", href)


def _form(wanted: Wanted) -> Form:
    labels = {OPEN: "open: not complete", EVERY: "any"}
    return Form(
        action="/transactions",
        fields=(
            Field(
                name="state",
                label="State",
                value=wanted.state,
                choices=[(choice, labels.get(choice, choice)) for choice in CHOICES],
            ),
            Field(name="transactional_id", label="Transactional id contains", value=wanted.text),
        ),
    )


def _command(wanted: Wanted) -> str:
    states = [word for state in states_of(wanted.state) for word in ("--state", state.value)]
    pattern = ["--id-pattern", places.containing(wanted.text)] if wanted.text else []
    is_by_age = order_of(wanted.state) is TransactionOrder.OLDEST_FIRST
    order = ["--oldest-first"] if is_by_age else []
    return command_line("transactions", "list", *states, *pattern, *order)
