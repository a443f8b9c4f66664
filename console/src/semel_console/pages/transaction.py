"""One transactional id, or one of its transactions."""

import asyncio
from dataclasses import replace

from starlette.responses import Response

from aiosemel import HistoryFilter, TransactionalIdDescription, TransactionHistory
from aiosemel.errors import SemelError
from semel_console.insight.ended_writes import ended_writes
from semel_console.insight.open_writes import UNDECIDED, OpenWrites, open_writes
from semel_console.mode import Mode
from semel_console.pages.asks.marker_asks import owing
from semel_console.views.blocks import Missing
from semel_console.views.ended_view import Writes
from semel_console.views.transaction_view import Asked, transaction_page
from semel_console.views.unfinished_view import Told
from semel_console.web.visit import Visit

_ENDED_MAX = 20


async def show(visit: Visit) -> Response:
    """Show a transactional id; with an epoch, that transaction and how it ended."""
    name, epoch = visit.needed("transactional_id"), visit.number("epoch")
    producer_id = visit.number("producer_id")
    admin = visit.admin
    async with asyncio.TaskGroup() as tasks:
        describing = tasks.create_task(
            visit.ask("The transactional id", admin.describe_transactions(name))
        )
        deciding = epoch is not None and tasks.create_task(
            visit.ask(
                "The outcome", admin.get_transaction_outcome(name, epoch, producer_id=producer_id)
            )
        )
        remembering = tasks.create_task(
            visit.ask(
                "The history",
                admin.transaction_history(
                    HistoryFilter(
                        transactional_id=name, producer_epoch=epoch, producer_id=producer_id
                    ),
                    limit=_ENDED_MAX,
                ),
            )
        )
    described, history = describing.result(), remembering.result()
    async with asyncio.TaskGroup() as tasks:
        told = tasks.create_task(_told(visit, _of_producer(described, producer_id), epoch))
        ended = tasks.create_task(_ended_writes(visit, history, epoch))
    asked = Asked(
        transactional_id=name,
        described=described,
        epoch=epoch,
        producer_id=producer_id,
        outcome=deciding.result() if deciding else None,
        history=history,
        told=told.result(),
        ended_writes=ended.result(),
    )
    return visit.show(
        transaction_page(
            asked,
            visit.now_ms,
            visit.options.jaeger,
            acts=visit.options.mode is Mode.OPERATOR,
        )
    )


def _of_producer(
    described: TransactionalIdDescription | Missing, producer_id: int | None
) -> TransactionalIdDescription | Missing:
    """Return the id with the transactions of one producer only; None: with those of all."""
    if isinstance(described, Missing) or producer_id is None:
        return described
    return replace(
        described,
        transactions=tuple(
            each
            for each in described.transactions
            if (each.producer_id or described.producer_id) == producer_id
        ),
    )


async def _told(
    visit: Visit, described: TransactionalIdDescription | Missing, epoch: int | None
) -> Told:
    """Return what participants know of a transaction until it ends."""
    async with asyncio.TaskGroup() as tasks:
        owed = tasks.create_task(owing(visit, described, epoch))
        asked = tasks.create_task(_open_writes(visit, described, epoch))
    written = asked.result()
    if written is None:
        return Told(owing=owed.result())
    explain = visit.explain
    return Told(
        owing=owed.result(),
        writes=[
            explain(f"The first write to {at}", each) if isinstance(each, SemelError) else each
            for at, each in written.first_writes.items()
            if each is not None
        ],
        offsets={
            group_id: explain(f"The offsets for group {group_id}", each)
            if isinstance(each, SemelError)
            else each
            for group_id, each in written.offsets.items()
        },
    )


async def _open_writes(
    visit: Visit, described: TransactionalIdDescription | Missing, epoch: int | None
) -> OpenWrites | None:
    """Return what the transaction of the page has written; None unless it is open."""
    if isinstance(described, Missing):
        return None
    for chosen in described.transactions:
        if chosen.producer_epoch == epoch and chosen.state in UNDECIDED:
            return await open_writes(visit.admin, described, chosen)
    return None


async def _ended_writes(
    visit: Visit, history: TransactionHistory | Missing, epoch: int | None
) -> Writes:
    """Return the records of the transaction that the page is about, once it has ended."""
    if epoch is None or isinstance(history, Missing) or len(history.transactions) != 1:
        return {}
    found = await ended_writes(visit.admin, history.transactions[0])
    return {
        at: visit.explain(f"The records in {at}", each) if isinstance(each, SemelError) else each
        for at, each in found.items()
    }
