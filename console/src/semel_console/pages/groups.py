"""The consumer groups, and one group."""

import asyncio

from starlette.responses import Response

from aiosemel import IsolationLevel, OffsetSpec, SemelClient, TopicPartition
from semel_console.insight.offset_views import GroupOffset
from semel_console.pages.asks.group_asks import lag_of
from semel_console.views.blocks import Missing
from semel_console.views.group_view import AskedGroup, group_page, groups_page, sample_of
from semel_console.web.visit import Visit

_PENDING_MAX = 20
"""The transactions with pending offsets whose ids are looked up."""


async def show_list(visit: Visit) -> Response:
    """Show the groups."""
    listed, missing = await visit.ask_everyone("The list", visit.admin.list_groups())
    page = groups_page(listed, visit.text("q"), visit.text("after"))
    return visit.show(page.lacking(missing))


async def show_one(visit: Visit) -> Response:
    """Show a group; raises SemelError if there is none of this id."""
    described = await visit.admin.describe_group(visit.needed("id"))
    pending = [(each.producer_id, each.producer_epoch) for each in described.pending]
    async with asyncio.TaskGroup() as tasks:
        offsets = tasks.create_task(visit.ask("The offsets", lag_of(visit, described.group_id)))
        outcomes = {
            key: tasks.create_task(
                visit.ask(
                    "The transaction",
                    visit.admin.get_transaction_outcome(None, key[1], producer_id=key[0]),
                )
            )
            for key in pending[:_PENDING_MAX]
        }
    known = offsets.result()
    held_back: dict[TopicPartition, int] | Missing = {}
    if not isinstance(known, Missing):
        held_back = await visit.ask(
            "The number of records behind the LSO", _held_back(visit.client, known.offsets)
        )
    asked = AskedGroup(
        described=described,
        offsets=known if isinstance(known, Missing) else known.offsets,
        committed={} if isinstance(known, Missing) else known.committed,
        missing=() if isinstance(known, Missing) else known.missing,
        held_back=held_back,
        transactions={key: task.result() for key, task in outcomes.items()},
    )
    now_ms = visit.now_ms
    sample = sample_of(asked, now_ms)
    samples = visit.lag_samples.note(visit.client, described.group_id, sample) if sample else ()
    return visit.show(group_page(asked, now_ms, samples))


async def _held_back(client: SemelClient, offsets: list[GroupOffset]) -> dict[TopicPartition, int]:
    """Return how many records lie behind each last stable offset, where there are any."""
    admin = client.admin()
    stable = {each.partition: each.stable_end for each in offsets}
    ends = await admin.list_offsets(dict.fromkeys(stable, OffsetSpec.LATEST))
    behind = {
        at: stable[at] for at, end in ends.items() if end is not None and end.offset > stable[at]
    }
    if not behind:
        return {}
    return await admin.count_records(behind, isolation_level=IsolationLevel.READ_UNCOMMITTED)
