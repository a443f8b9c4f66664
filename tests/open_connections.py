"""Names the test that leaves a connection open.

Python notices such a connection when it collects garbage, which may be in any later test.
"""

import asyncio
from asyncio.selector_events import BaseSelectorEventLoop


def watch_open_connections() -> None:
    """Let the close of an event loop fail if a connection of the loop is still open."""
    close = BaseSelectorEventLoop.close

    def close_and_look(loop: asyncio.BaseEventLoop) -> None:
        left = [] if loop.is_closed() else _open_transports(loop)
        for transport in left:
            transport.abort()
        if left:
            loop.run_until_complete(asyncio.sleep(0))  # Transports close their sockets now.
        close(loop)
        assert not left, f"the test leaves connections open: {left}"

    setattr(BaseSelectorEventLoop, "close", close_and_look)  # noqa: B010 - mypy rejects the assignment


def _open_transports(loop: asyncio.BaseEventLoop) -> list[asyncio.WriteTransport]:
    known = loop._transports.values()  # type: ignore[attr-defined]  # asyncio offers no list
    return [
        transport
        for transport in list(known)
        if isinstance(transport, asyncio.WriteTransport)
        and not transport.is_closing()
        and transport.get_extra_info("peername")
    ]
