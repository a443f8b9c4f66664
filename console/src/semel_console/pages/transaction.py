"""One transactional id, or one of its transactions."""

import asyncio

from starlette.responses import Response

from aiosemel import (
    Admin,
    HistoryFilter,
    TopicPartition,
    TransactionalIdDescription,
    TransactionDescription,
    TransactionHistory,
    TransactionState,
)
from aiosemel.errors import SemelError
from semel_console.insight.ended_writes import ended_writes
from semel_console.mode import Mode
from semel_console.pages.asks.marker_asks import owing
from semel_console.views.blocks import Missing
from semel_console.views.ended_view import Writes
from semel_console.views.transaction_view import Asked, FirstWrite, transaction_page
from semel_console.web.visit import Visit

_PARTITIONS_MAX = 16
"""The partitions of one transaction that are asked for its first write."""
_ENDED_MAX = 20
_UNDECIDED = (TransactionState.ONGOING, TransactionState.PREPARED)


async def show(visit: Visit) -> Response:
    """Show a transactional id; with an epoch, that transaction and how it ended."""
    name, epoch = visit.needed("transactional_id"), visit.number("epoch")
    admin = visit.admin
    async with asyncio.TaskGroup() as tasks:
        describing = tasks.create_task(
            visit.ask("The transactional id", admin.describe_transactions(name))
        )
        deciding = epoch is not None and tasks.create_task(
            visit.ask("The outcome", admin.get_transaction_outcome(name, epoch))
        )
        remembering = tasks.create_task(
            visit.ask(
                "The history",
                admin.transaction_history(
                    HistoryFilter(transactional_id=name, producer_epoch=epoch),
                    limit=_ENDED_MAX if epoch is None else 1,
                ),
            )
        )
    described, history = describing.result(), remembering.result()
    async with asyncio.TaskGroup() as tasks:
        owed = tasks.create_task(owing(visit, described, epoch))
        written = tasks.create_task(_first_writes(visit, described, epoch))
        ended = tasks.create_task(_ended_writes(visit, history, epoch))
    asked = Asked(
        transactional_id=name,
        described=described,
        epoch=epoch,
        outcome=deciding.result() if deciding else None,
        history=history,
        owing=owed.result(),
        writes=written.result(),
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


async def _first_writes(
    visit: Visit, described: TransactionalIdDescription | Missing, epoch: int | None
) -> list[FirstWrite | Missing]:
    """Return where an open transaction began to write; brokers know that until it ends."""
    if isinstance(described, Missing):
        return []
    for chosen in described.transactions:
        if chosen.producer_epoch == epoch and chosen.state in _UNDECIDED:
            producer_id = chosen.producer_id or described.producer_id
            return await _ask_brokers(visit, chosen, producer_id)
    return []


async def _ended_writes(
    visit: Visit, history: TransactionHistory | Missing, epoch: int | None
) -> Writes:
    """Return the records of the transaction that the page is about, once it has ended."""
    if epoch is None or isinstance(history, Missing) or not history.transactions:
        return {}
    found = await ended_writes(visit.admin, history.transactions[0])
    return {
        at: visit.instances.explain(f"The records in {at}", each)
        if isinstance(each, SemelError)
        else each
        for at, each in found.items()
    }


async def _ask_brokers(
    visit: Visit, chosen: TransactionDescription, producer_id: int
) -> list[FirstWrite | Missing]:
    async with asyncio.TaskGroup() as group:
        asked = [
            group.create_task(
                visit.ask(
                    f"The first write to {at}",
                    _first_write(visit.admin, at, producer_id, chosen.producer_epoch),
                )
            )
            for at in chosen.participants.partitions[:_PARTITIONS_MAX]
        ]
    return [found for task in asked if (found := task.result()) is not None]


async def _first_write(
    admin: Admin, at: TopicPartition, producer_id: int, epoch: int
) -> FirstWrite | None:
    described = await admin.operators.describe_producers(at)
    for producer in described.producers:
        if producer.producer_id != producer_id:
            continue
        for opened in producer.open_transactions:
            if opened.producer_epoch == epoch:
                return FirstWrite(
                    partition=at, first_offset=opened.first_offset, time_ms=opened.start_time_ms
                )
    return None
