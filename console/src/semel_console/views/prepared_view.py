"""The prepared transactions, which wait for their owners, and what waits behind them. No I/O."""

from collections.abc import Mapping, Sequence
from functools import partial

from aiosemel import TransactionalIdDescription, TransactionDescription, TransactionState
from semel_console.insight.command_lines import command_line
from semel_console.insight.texts import counted, time_text
from semel_console.views import places
from semel_console.views.blocks import (
    Block,
    Facts,
    Grid,
    Missing,
    Notice,
    Page,
    Row,
    Section,
    Tone,
    cell,
    code,
    link,
)
from semel_console.views.states import age, participants

SHOWN_MAX = 20
"""The ids on one page, each with all that waits behind it."""


def prepared_page(
    ids: Sequence[str] | Missing,
    described: Mapping[str, TransactionalIdDescription | Missing],
    now_ms: int,
) -> Page:
    """Return the prepared transactions, the ids in their order."""
    sections = [
        Section(title="", blocks=(ids,))
        if isinstance(ids, Missing)
        else Section(title="", blocks=(_summary(ids),)),
        *(_one(name, each, now_ms) for name, each in described.items()),
    ]
    return Page(
        title="Prepared transactions",
        command=command_line("transactions", "list", "--state", "prepared"),
        sections=sections,
    )


def _summary(ids: Sequence[str]) -> Notice:
    if not ids:
        return Notice(text="No transaction is prepared.", tone=Tone.GOOD)
    count = counted(len(ids), "transactional id")
    more = "" if len(ids) <= SHOWN_MAX else f" The page shows the first {SHOWN_MAX}."
    return Notice(
        text=f"{count} with a prepared transaction. Each waits for its owner, without a time-out;"
        f" readers of committed records wait behind it.{more}",
        tone=Tone.WARN,
    )


def _one(name: str, described: TransactionalIdDescription | Missing, now_ms: int) -> Section:
    if isinstance(described, Missing):
        return Section(title=name, blocks=(described,))
    prepared = [each for each in described.transactions if each.state is TransactionState.PREPARED]
    blocks: list[Block] = []
    for each in prepared:
        blocks += _transaction(described, each, now_ms)
    return Section(title=name, blocks=blocks)


def _transaction(
    described: TransactionalIdDescription, each: TransactionDescription, now_ms: int
) -> Sequence[Block]:
    producer_id = each.producer_id or described.producer_id
    name = described.transactional_id
    remedy = partial(command_line, "transactions", "complete", names=(name, each.producer_epoch))
    return (
        Facts(
            pairs=(
                (
                    "Epoch",
                    link(each.producer_epoch, places.transaction(name, each.producer_epoch)),
                ),
                ("Producer id", cell(producer_id)),
                ("Prepared at", cell(time_text(each.prepared_time_ms or 0))),
                ("Prepared for", age(each.prepared_time_ms, now_ms)),
                (
                    "If its outside system has committed",
                    code(remedy(options=("--commit",))),
                ),
                (
                    "If its outside system has not committed",
                    code(remedy(options=("--abort",))),
                ),
            )
        ),
        Grid(
            headings=("Partitions and groups that wait",),
            rows=[Row(cells=(at,)) for at in participants(each.participants)],
            empty="The coordinator knows no partition or group of it.",
        ),
    )
