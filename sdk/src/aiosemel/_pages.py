"""Lists that come in pages: every page is asked for, and no server keeps a caller busy for ever."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeVar

from aiosemel.errors import UnknownServerError


class Page(Protocol):
    """An answer that may have a next page."""

    @property
    def next_page_token(self) -> str:
        """Names the next page; empty: this was the last one."""
        ...


P = TypeVar("P", bound=Page)


async def pages(ask: Callable[[str], Awaitable[P]]) -> AsyncIterator[P]:
    """Yield page after page; ``ask`` is given the token of each.

    Raises UnknownServerError when a token comes a second time: the list would never end.
    """
    token = ""
    seen = {token}
    while True:
        page = await ask(token)
        yield page
        token = page.next_page_token
        if not token:
            return
        if token in seen:
            raise UnknownServerError(f"the server answers the page {token[:80]!r} of a list twice")
        seen.add(token)
