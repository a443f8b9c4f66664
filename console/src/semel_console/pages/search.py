"""The search."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from starlette.responses import RedirectResponse, Response

from semel_console.views import places
from semel_console.views.blocks import Missing, link
from semel_console.views.search_view import FOUND_MAX, Finds, search_page
from semel_console.web.visit import Visit

T = TypeVar("T")


async def show(visit: Visit) -> Response:
    """Show what has a text in its name; go to it, if it is the only thing."""
    text = visit.text("q").strip()
    if not text:
        return visit.show(search_page("", ()))
    admin, pattern = visit.admin, places.containing(text)
    async with asyncio.TaskGroup() as tasks:
        topics = tasks.create_task(visit.ask_everyone("The topics", admin.list_topics()))
        groups = tasks.create_task(visit.ask_everyone("The groups", admin.list_groups()))
        ids = tasks.create_task(
            visit.ask_everyone(
                "The transactional ids",
                admin.list_transactions(transactional_id_pattern=pattern, limit=FOUND_MAX + 1),
            )
        )
    found = (
        _finds(text, topics.result(), lambda each: each.name, places.topic),
        _finds(text, groups.result(), lambda each: each.group_id, places.group),
        _finds(text, ids.result(), lambda each: each.transactional_id, places.transaction),
    )
    links = [each for finds in found for each in finds.links]
    is_whole = not any(finds.missing for finds in found)
    # A service that is away may have more finds, but none that fits better than the whole name.
    if len(links) == 1 and (is_whole or links[0].text == text):
        return RedirectResponse(links[0].href, status_code=303)
    return visit.show(search_page(text, found))


def _finds(
    text: str,
    answer: tuple[Sequence[T] | Missing, Sequence[Missing]],
    name_of: Callable[[T], str],
    place_of: Callable[[str], str],
) -> Finds:
    """Return the things that have the text in their names, each once."""
    listed, missing = answer
    if isinstance(listed, Missing):
        return Finds(links=(), missing=(listed,))
    names = sorted({name_of(each) for each in listed if text in name_of(each)})
    return Finds(links=[link(name, place_of(name)) for name in names], missing=missing)
