"""One transactional id, and one of its transactions. No I/O."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from aiosemel import (
    AbortReason,
    JointDescription,
    KnownOutcome,
    TransactionalIdDescription,
    TransactionDescription,
    TransactionHistory,
    TransactionOutcomeDescription,
    TransactionState,
)
from semel_console.insight.command_lines import command_line
from semel_console.insight.texts import duration_text, time_text
from semel_console.views import places
from semel_console.views.action_view import Action, offers
from semel_console.views.blocks import (
    Block,
    Cell,
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
    cell,
    link,
)
from semel_console.views.ended_view import Writes, ended_sections
from semel_console.views.history_view import history_grid
from semel_console.views.states import age, transaction_state
from semel_console.views.unfinished_view import Told, unfinished_sections

_REASONS = {
    AbortReason.CLIENT: "its own producer aborted it",
    AbortReason.TIMED_OUT: "it was open for longer than its time-out",
    AbortReason.FENCED: "a new producer took over its transactional id",
    AbortReason.OPERATOR: "an operator aborted it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the cluster answered about a transactional id."""

    transactional_id: str
    described: TransactionalIdDescription | Missing
    epoch: int | None
    """The transaction that the page is about; None: the id with all of them."""
    producer_id: int | None
    """Of that transaction; None: of the id's producer, or of any writer of a joint transaction."""
    outcome: TransactionOutcomeDescription | Missing | None
    """None: no epoch is asked for."""
    history: TransactionHistory | Missing
    """That transaction, if it has ended; without an epoch, the last ones of the id."""
    told: Told
    """By participants of the transaction that the page is about, until it has ended."""
    ended_writes: Writes
    """What that transaction wrote, once it has ended."""


def transaction_page(asked: Asked, now_ms: int, jaeger: str, *, acts: bool) -> Page:
    """Return the page of an id, or of one transaction of it; ``acts``: with what may be done."""
    chosen = _chosen(asked)
    sections = [
        *_outcome(asked),
        *(_actions(chosen, asked) if chosen and acts else ()),
        *(_unfinished(chosen, asked, now_ms, jaeger) if chosen else _ended(asked, jaeger)),
        *_all(asked, now_ms),
    ]
    name = asked.transactional_id
    title = name if asked.epoch is None else f"{name}, epoch {asked.epoch}"
    kept = [("transactional_id", name)]
    if asked.producer_id is not None:
        kept.append(("producer_id", str(asked.producer_id)))
    return Page(
        title=title,
        command=_command(asked),
        sections=sections,
        trail=(link("Transactions", "/transactions"), *_above(asked)),
        form=Form(
            action="/transaction",
            kept=kept,
            fields=(Field(name="epoch", label="Epoch", value=_text(asked.epoch)),),
            button="How did it end?",
        ),
    )


def _command(asked: Asked) -> str:
    if asked.epoch is None:
        return command_line("transactions", "describe", names=(asked.transactional_id,))
    producer = () if asked.producer_id is None else ("--producer-id", asked.producer_id)
    return command_line(
        "transactions",
        "timeline",
        names=(asked.transactional_id, asked.epoch),
        options=producer,
    )


def _above(asked: Asked) -> Sequence[Cell]:
    if asked.epoch is None:
        return ()
    return (link(asked.transactional_id, places.transaction(asked.transactional_id)),)


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


def _chosen(asked: Asked) -> TransactionDescription | None:
    if isinstance(asked.described, Missing) or asked.epoch is None:
        return None
    found = [
        each
        for each in asked.described.transactions
        if each.producer_epoch == asked.epoch
        and asked.producer_id in (None, each.producer_id or asked.described.producer_id)
    ]
    return found[0] if len(found) == 1 else None


def _outcome(asked: Asked) -> Sequence[Section]:
    if asked.outcome is None:
        return ()
    described = asked.described
    if asked.producer_id is None and not isinstance(described, Missing) and described.joint:
        text = "Each writer of a joint transaction has a producer id of its own."
        return (Section(title="", blocks=(Notice(text=text),)),)
    if isinstance(asked.outcome, Missing):
        return (Section(title="", blocks=(asked.outcome,)),)
    return (Section(title="", blocks=(outcome_notice(asked.outcome),)),)


def outcome_notice(known: TransactionOutcomeDescription) -> Notice:
    """Return how a transaction ended, as one sentence."""
    match known.outcome:
        case KnownOutcome.COMMITTED:
            markers = "" if known.is_complete else " Some markers are still missing."
            return Notice(text=f"Yes: it is committed.{markers}", tone=Tone.GOOD)
        case KnownOutcome.ABORTED:
            reason = known.abort_reason
            why = f"{reason.value}, {_REASONS[reason]}" if reason else "the reason is not known"
            return Notice(text=f"No: it is aborted ({why}).", tone=Tone.BAD)
        case KnownOutcome.PREPARED:
            text = "It is prepared: its owner decides, and no time-out ends it."
            return Notice(text=text, tone=Tone.WARN)
        case KnownOutcome.ONGOING:
            left_ms = known.time_left_ms
            ends = "" if left_ms is None else f" It times out in {duration_text(left_ms)}."
            return Notice(text=f"It is open: it may still commit or abort.{ends}", tone=Tone.WARN)
        case KnownOutcome.TOO_OLD_TO_KNOW:
            text = "The outcome is too old to know: the coordinator keeps the last 256 of an id."
            return Notice(text=text)


def _unfinished(
    chosen: TransactionDescription, asked: Asked, now_ms: int, jaeger: str
) -> Sequence[Section]:
    client = None if isinstance(asked.described, Missing) else asked.described.client
    trace = _trace(chosen.traceparent, jaeger)
    return unfinished_sections(chosen, client, asked.told, trace, now_ms)


def _actions(chosen: TransactionDescription, asked: Asked) -> Sequence[Section]:
    described = asked.described
    if isinstance(described, Missing):
        return ()
    actions = {
        TransactionState.ONGOING: (Action.ABORT, Action.FENCE),
        TransactionState.PREPARED: (Action.COMMIT_PREPARED, Action.ABORT_PREPARED),
    }.get(chosen.state, ())
    producer_id = chosen.producer_id or described.producer_id
    links = offers(described.transactional_id, producer_id, chosen.producer_epoch, actions)
    return (Section(title="", blocks=(Notice(text="By hand:", links=links),)),) if links else ()


def _ended(asked: Asked, jaeger: str) -> Sequence[Section]:
    """Return the transaction that the page is about, from the history."""
    if asked.epoch is None:
        return ()
    if isinstance(asked.history, Missing):
        return (Section(title="", blocks=(asked.history,)),)
    if len(asked.history.transactions) > 1:
        grid = history_grid(asked.history.transactions)
        return (Section(title="Transactions of this epoch", blocks=(grid,)),)
    for ended in asked.history.transactions:
        return ended_sections(ended, _trace(ended.traceparent, jaeger), asked.ended_writes)
    known = asked.outcome
    if isinstance(known, TransactionOutcomeDescription) and known.outcome in _OVER:
        return (Section(title="This transaction", blocks=(Notice(text=_NO_ENTRY),)),)
    return ()


_OVER = (KnownOutcome.COMMITTED, KnownOutcome.ABORTED)
_NO_ENTRY = (
    "The history has no entry of this transaction, so its times, partitions and groups are not"
    " known. The transaction wrote nothing, or it is too old: coordinators keep entries for a day,"
    " or for less if there are many."
)


def _trace(traceparent: str, jaeger: str) -> Cell:
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None:
        return cell(None)
    trace_id = found["trace_id"]
    return link(trace_id, f"{jaeger.rstrip('/')}/trace/{trace_id}") if jaeger else cell(trace_id)


_TRACEPARENT = re.compile("[0-9a-f]{2}-(?P<trace_id>[0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


def _all(asked: Asked, now_ms: int) -> Sequence[Section]:
    described = asked.described
    if isinstance(described, Missing):
        return (Section(title="Transactional id", blocks=(described,)),)
    blocks: list[Block] = [
        Facts(
            pairs=(
                ("Producer id", cell(described.producer_id or None)),
                ("Epoch", cell(described.producer_epoch if described.producer_id else None)),
                ("Time-out", cell(duration_text(described.transaction_timeout_ms))),
            )
        )
    ]
    if described.joint is not None:
        blocks += _joint(described.transactional_id, described.joint, now_ms)
    blocks.append(
        Grid(
            headings=("Epoch", "State", "Began", "Age", "Markers missing", "Reason"),
            numbers=frozenset({0}),
            rows=[
                Row(
                    cells=(
                        link(
                            each.producer_epoch,
                            places.transaction(
                                described.transactional_id,
                                each.producer_epoch,
                                each.producer_id or None,
                            ),
                        ),
                        transaction_state(each.state),
                        cell(time_text(each.start_time_ms or 0)),
                        age(each.start_time_ms, now_ms),
                        cell(", ".join(_names(each)) or None),
                        cell(each.abort_reason),
                    )
                )
                for each in described.transactions
            ],
            empty="No transaction is open, and no marker is missing.",
        )
    )
    return (Section(title="Transactional id", blocks=blocks), *_recent(asked))


def _recent(asked: Asked) -> Sequence[Section]:
    """Return the last transactions of the id that have ended."""
    if asked.epoch is not None:
        return ()
    if isinstance(asked.history, Missing):
        return (Section(title="Ended in the last day", blocks=(asked.history,)),)
    return (
        Section(title="Ended in the last day", blocks=(history_grid(asked.history.transactions),)),
    )


def _names(each: TransactionDescription) -> list[str]:
    missing = each.missing_markers
    return [*map(str, missing.partitions), *(f"group {name}" for name in missing.group_ids)]


def _joint(transactional_id: str, joint: JointDescription, now_ms: int) -> Sequence[Block]:
    return (
        Facts(
            pairs=(
                ("Owner", cell(joint.owner)),
                ("Run", cell(joint.run)),
                ("Committed version", cell(joint.committed_version)),
                ("Open version", cell(joint.open_version)),
                ("Open for", age(joint.start_time_ms, now_ms)),
                ("Kept alive", age(joint.kept_alive_ms, now_ms)),
            )
        ),
        Grid(
            headings=("Writer", "Producer id", "Epoch"),
            numbers=frozenset({1, 2}),
            rows=[
                Row(
                    cells=(
                        cell(writer.writer),
                        cell(writer.producer_id),
                        link(
                            writer.producer_epoch,
                            places.transaction(
                                transactional_id, writer.producer_epoch, writer.producer_id
                            ),
                        ),
                    )
                )
                for writer in joint.writers
            ],
            empty="No version is open.",
        ),
    )
