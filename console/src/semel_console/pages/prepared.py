"""The prepared transactions."""

import asyncio

from starlette.responses import Response

from semel_console.views.blocks import Missing
from semel_console.views.prepared_view import SHOWN_MAX, prepared_page
from semel_console.web.visit import Visit


async def show(visit: Visit) -> Response:
    """Show the prepared transactions, and what waits behind each."""
    listed, missing = await visit.ask_everyone("The list", visit.admin.list_prepared_transactions())
    if isinstance(listed, Missing):
        return visit.show(prepared_page(listed, {}, visit.now_ms))
    ids = sorted({each.transactional_id for each in listed})
    async with asyncio.TaskGroup() as group:
        asked = {
            name: group.create_task(visit.ask(name, visit.admin.describe_transactions(name)))
            for name in ids[:SHOWN_MAX]
        }
    described = {name: task.result() for name, task in asked.items()}
    return visit.show(prepared_page(ids, described, visit.now_ms).lacking(missing))
