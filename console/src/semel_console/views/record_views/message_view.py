"""Records of one partition: keys, values, headers, and whether readers see them. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aiosemel import BatchOutcome, ConsumerRecord, TopicPartition, TransactionOutcomeDescription
from semel_console.insight.command_lines import command_line
from semel_console.insight.offset_views import Watermarks
from semel_console.insight.texts import counted, time_text
from semel_console.views import places
from semel_console.views.blocks import (
    NOTHING,
    Block,
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
    badge,
    cell,
    code,
    link,
)
from semel_console.views.paging import fitting

COMMITTED = "read_committed"
UNCOMMITTED = "read_uncommitted"
ISOLATIONS = (COMMITTED, UNCOMMITTED)
ISOLATION_CHOICES = (
    (COMMITTED, "visible to readers of committed records"),
    (UNCOMMITTED, "all records, open and aborted ones too"),
)
RECORDS_MAX = 50
PREVIEW_BYTES = 160
"""Of a value in the list."""
VALUE_BYTES = 4_096
"""Of a value on its own page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRecords:
    """What the address asks for."""

    at: TopicPartition
    start: int
    isolation: str
    text: str
    """Bytes that a key or a value contains, as text; empty: any record."""
    one: bool
    """Whether only the record at ``start`` is asked for, with more of its value."""


Writer = tuple[int, int]
"""A transaction, by producer id and producer epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedRecords:
    """What a bounded read of the log found."""

    records: Sequence[ConsumerRecord]
    outcomes: Mapping[int, BatchOutcome | None] = field(default_factory=dict)
    """What has become of each record, by offset; None: the broker does not tell."""
    writers: Mapping[int, Writer]
    """The transactions of the records, by offset; records outside of transactions have none."""
    transactions: Mapping[Writer, TransactionOutcomeDescription | Missing] = field(
        default_factory=dict
    )
    """Their ids and ends, of as many as one page asks for."""
    scanned: int
    """How many records were read and compared."""
    next_offset: int
    """Where the read has stopped."""


def messages_page(
    wanted: WantedRecords, marks: Watermarks | Missing, scanned: ScannedRecords | Missing
) -> Page:
    """Return some records of a partition, from an offset on."""
    at = wanted.at
    blocks: list[Block] = []
    more = None
    if isinstance(marks, Missing):
        blocks.append(marks)
    elif isinstance(scanned, Missing):
        blocks.append(scanned)
    else:
        size = VALUE_BYTES if wanted.one else PREVIEW_BYTES
        rows = fitting(
            [record_row(each, wanted, scanned, marks, size) for each in scanned.records],
            RECORDS_MAX,
        )
        blocks += [_summary(wanted, marks, scanned, len(rows)), _grid(rows)]
        following = scanned.next_offset
        if len(rows) < len(scanned.records):
            following = scanned.records[len(rows)].offset
        more = _more(wanted, marks, following)
    return Page(
        title=f"Records of {at}",
        command=_command(wanted),
        trail=(
            link("Topics", "/topics"),
            link(at.topic, places.topic(at.topic)),
            link(str(at.partition), places.partition(at)),
        ),
        form=_form(wanted),
        sections=(Section(title="", blocks=blocks),),
        more=more,
        is_live=False,
    )


def _summary(
    wanted: WantedRecords, marks: Watermarks, scanned: ScannedRecords, shown: int
) -> Notice:
    stop = marks.stable_end if wanted.isolation == COMMITTED else marks.end
    where = (
        f"The log has offsets {marks.start} to {marks.end}; the last stable offset is"
        f" {marks.stable_end}."
    )
    if wanted.start >= stop:
        if wanted.isolation == COMMITTED and marks.end > marks.stable_end:
            return Notice(
                text=f"A reader of committed records stands at the last stable offset. {where}",
                tone=Tone.WARN,
                links=(link("Find its holder", places.partition(wanted.at)),),
            )
        return Notice(text=f"There is no record at offset {wanted.start} or later. {where}")
    read = f"{counted(scanned.scanned, 'record')} read up to offset {scanned.next_offset}"
    return Notice(text=f"{counted(shown, 'record')} shown, {read}. {where}")


def _grid(rows: Sequence[Row]) -> Grid:
    return Grid(
        headings=("Offset", "Time", "Key", "Value", "Headers", "Seen by readers", "Transaction"),
        numbers=frozenset({0}),
        rows=rows,
        empty="No record was found in this stretch of the log.",
    )


def record_row(
    each: ConsumerRecord,
    wanted: WantedRecords,
    scanned: ScannedRecords,
    marks: Watermarks,
    size: int,
) -> Row:
    """Return a record, with ``size`` bytes of its key and of its value at most."""
    state = _state(each.offset, wanted, scanned, marks)
    return Row(
        cells=(
            link(each.offset, _address(wanted, start=each.offset, one="1")),
            cell(time_text(each.timestamp_ms)),
            payload(each.key, size),
            payload(each.value, size),
            cell(", ".join(f"{name}={_text(value, 64)}" for name, value in each.headers)),
            state,
            _transaction(scanned.writers.get(each.offset), scanned),
        ),
        tone=Tone.MUTED if state.tone is Tone.BAD else Tone.PLAIN,
    )


def _transaction(writer: Writer | None, scanned: ScannedRecords) -> Cell:
    """Return the transaction that wrote a record, with its page if its id is known."""
    if writer is None:
        return NOTHING
    producer_id, epoch = writer
    known = scanned.transactions.get(writer)
    if known is None or isinstance(known, Missing) or not known.transactional_id:
        return cell(f"producer id {producer_id}, epoch {epoch}")
    name = known.transactional_id
    return link(f"{name}, epoch {epoch}", places.transaction(name, epoch, producer_id))


def _state(offset: int, wanted: WantedRecords, scanned: ScannedRecords, marks: Watermarks) -> Cell:
    outcome = scanned.outcomes.get(offset)
    if outcome is BatchOutcome.ABORTED:
        return badge("no: aborted", Tone.BAD)
    if outcome is BatchOutcome.OPEN:
        return badge("not yet: its transaction is open", Tone.WARN)
    if offset >= marks.stable_end:
        return badge("not yet: behind an open transaction", Tone.WARN)
    if outcome is None and wanted.isolation != COMMITTED:
        return cell("the broker's release does not tell", Tone.MUTED)
    return badge("yes", Tone.GOOD)


def payload(data: bytes | None, size: int) -> Cell:
    """Return the beginning of a key or a value, and how much more there is."""
    if data is None:
        return cell("null", Tone.MUTED)
    if not data:
        return cell("empty", Tone.MUTED)
    rest = "" if len(data) <= size else f" … {len(data) - size:,} bytes more"
    return code(f"{_text(data[:size], size)}{rest}")


def _text(data: bytes | None, size: int) -> str:
    """Return bytes as text, or as hexadecimal digits where they are none."""
    if data is None:
        return "null"
    some = data[:size]
    try:
        return some.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start >= len(some) - 3 and error.start:  # The cut went through a character.
            return some[: error.start].decode("utf-8")
        return f"0x{some.hex()}"


def _more(wanted: WantedRecords, marks: Watermarks, following: int) -> Cell | None:
    stop = marks.stable_end if wanted.isolation == COMMITTED else marks.end
    if following >= stop or wanted.one:
        return None
    return link(f"From offset {following} on", _address(wanted, start=following))


def _address(wanted: WantedRecords, *, start: int, one: str | None = None) -> str:
    return places.address(
        "/messages",
        topic=wanted.at.topic,
        partition=wanted.at.partition,
        start=start,
        isolation=wanted.isolation,
        text=wanted.text or None,
        one=one,
    )


def _form(wanted: WantedRecords) -> Form:
    return Form(
        action="/messages",
        kept=(("topic", wanted.at.topic), ("partition", str(wanted.at.partition))),
        fields=(
            Field(name="start", label="From offset", value=str(wanted.start)),
            Field(
                name="isolation",
                label="Show",
                value=wanted.isolation,
                choices=ISOLATION_CHOICES,
            ),
            Field(name="text", label="Key or value contains", value=wanted.text),
        ),
    )


def _command(wanted: WantedRecords) -> str:
    return command_line(
        "consume",
        names=(wanted.at.topic,),
        options=(
            *("--partition", wanted.at.partition, "--offset", wanted.start),
            *("--isolation", wanted.isolation),
            *("--max-messages", 1 if wanted.one else RECORDS_MAX, "--to-end"),
        ),
    )
