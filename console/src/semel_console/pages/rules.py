"""Access rules and quotas."""

import asyncio

from starlette.responses import Response

from semel_console.views.rules_view import OPERATIONS, AskedRights, rules_page
from semel_console.web.visit import Visit


async def show(visit: Visit) -> Response:
    """Show the rules and the quotas."""
    asked = AskedRights(
        principal=visit.text("principal"),
        operation=visit.choice("operation", ("", *OPERATIONS)),
        topic=visit.text("topic"),
        group=visit.text("group"),
        transactional_id=visit.text("transactional_id"),
    )
    access = visit.admin.access
    async with asyncio.TaskGroup() as group:
        rules = group.create_task(visit.ask("The rules", access.describe_acls()))
        quotas = group.create_task(visit.ask("The quotas", access.describe_client_quotas()))
    return visit.show(rules_page(rules.result(), quotas.result(), asked))
