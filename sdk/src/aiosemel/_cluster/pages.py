"""Lists that come in pages: every page is asked for, and no server keeps a caller busy for ever."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeVar

from aiosemel.errors import UnknownServerError

LIST_MAX_BYTES = 256 << 20
"""All pages of one list together: a caller puts them together in memory."""


class Page(Protocol):
    """An answer that may have a next page."""

    @property
    def next_page_token(self) -> str:
        """Names the next page; empty: this was the last one."""
        ...

    def ByteSize(self) -> int: ...  # noqa: N802 - protobuf's name


P = TypeVar("P", bound=Page)


async def pages(ask: Callable[[str], Awaitable[P]]) -> AsyncIterator[P]:
    """Yield page after page; ``ask`` is given the token of each.

    Raises UnknownServerError when a token comes a second time, because the list would never end,
    and when all pages together are too large to be put together.
    """
    token = ""
    seen, size_bytes = {token}, 0
    while True:
        page = await ask(token)
        size_bytes += page.ByteSize()
        if size_bytes > LIST_MAX_BYTES:
            raise UnknownServerError(f"the server answers a list of over {LIST_MAX_BYTES:,} bytes")
        yield page
        token = page.next_page_token
        if not token:
            return
        if token in seen:
            raise UnknownServerError(f"the server answers the page {token[:80]!r} of a list twice")
        seen.add(token)
