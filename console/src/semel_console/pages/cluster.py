"""The cluster."""

import asyncio

from starlette.responses import Response

from semel_console.views.cluster_view import cluster_page
from semel_console.web.visit import Visit


async def show(visit: Visit) -> Response:
    """Show the instances, and the partitions that move between them."""
    async with asyncio.TaskGroup() as group:
        described = group.create_task(visit.ask("The cluster", visit.admin.describe_cluster()))
        moving = group.create_task(
            visit.ask("The moves", visit.admin.moves.list_partition_reassignments())
        )
    return visit.show(cluster_page(described.result(), moving.result()))
