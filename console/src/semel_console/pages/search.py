"""The search."""

import asyncio

from starlette.responses import RedirectResponse, Response

from semel_console.views import places
from semel_console.views.blocks import Missing, link
from semel_console.views.search_view import FOUND_MAX, search_page
from semel_console.web.visit import Visit


async def show(visit: Visit) -> Response:
    """Show what has a text in its name; go to it, if it is the only thing."""
    text = visit.text("q").strip()
    if not text:
        return visit.show(search_page("", (), (), ()))
    admin = visit.admin
    async with asyncio.TaskGroup() as tasks:
        topics = tasks.create_task(visit.ask("The topics", admin.list_topics()))
        groups = tasks.create_task(visit.ask("The groups", admin.list_groups()))
        ids = tasks.create_task(
            visit.ask(
                "The transactional ids",
                admin.list_transactions(
                    transactional_id_pattern=places.containing(text), limit=FOUND_MAX + 1
                ),
            )
        )
    listed = topics.result(), groups.result(), ids.result()
    found_topics = (
        listed[0]
        if isinstance(listed[0], Missing)
        else [link(each.name, places.topic(each.name)) for each in listed[0] if text in each.name]
    )
    found_groups = (
        listed[1]
        if isinstance(listed[1], Missing)
        else [
            link(each.group_id, places.group(each.group_id))
            for each in listed[1]
            if text in each.group_id
        ]
    )
    found_ids = (
        listed[2]
        if isinstance(listed[2], Missing)
        else [
            link(name, places.transaction(name))
            for name in sorted({each.transactional_id for each in listed[2]})
        ]
    )
    answers = (found_topics, found_groups, found_ids)
    known = [each for each in answers if not isinstance(each, Missing)]
    finds = [found for each in known for found in each]
    # A service that is away may have more finds, but none that fits better than the whole name.
    if len(finds) == 1 and (len(known) == len(answers) or finds[0].text == text):
        return RedirectResponse(finds[0].href, status_code=303)
    return visit.show(search_page(text, *answers))
