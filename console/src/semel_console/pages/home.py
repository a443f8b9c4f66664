"""The home page."""

import asyncio

from starlette.responses import Response

from semel_console.insight.doctor_checks import Thresholds
from semel_console.insight.examination import examine
from semel_console.views.home_view import home_page
from semel_console.web.visit import Visit

_IDS_MAX = 500
"""The transactional ids that one look examines: all of a large cluster take seconds."""


async def show(visit: Visit) -> Response:
    """Show the findings of the doctor."""
    async with asyncio.TaskGroup() as group:
        examined = group.create_task(
            visit.ask("The examination", examine(visit.admin, Thresholds(), ids_max=_IDS_MAX))
        )
        described = group.create_task(visit.ask("The cluster", visit.admin.describe_cluster()))
    return visit.show(home_page(examined.result(), described.result()))
