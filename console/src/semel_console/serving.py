"""The console as a server: its socket, its TLS, and its end."""

import asyncio
import socket
from collections.abc import Callable

import uvicorn

from aiosemel import Security
from semel_console.options import ConsoleOptions, Listen
from semel_console.web.app import make_app

_CONNECTIONS_MAX = 128
_GRACE_S = 3
"""How long a page may take that is being made when the console ends."""


class ListenError(Exception):
    """The console cannot listen where it is to; the message is a sentence for its user."""


def listening(listen: Listen) -> socket.socket:
    """Return a socket that listens; raises ListenError."""
    try:
        family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
        bound = socket.create_server((listen.host, listen.port), family=family)
        # Connections inherit it. Without it, a body waits 40 ms for the receipt of its headers.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return bound
    except OSError as error:
        raise ListenError(
            f"the console cannot listen on {listen.host}:{listen.port}: {error.strerror}; choose"
            " another address with --listen (port 0: any that is free)"
        ) from error


def url_of(options: ConsoleOptions, listener: socket.socket) -> str:
    """Return the address of the home page, for people."""
    host = f"[{options.listen.host}]" if ":" in options.listen.host else options.listen.host
    scheme = "https" if options.has_tls else "http"
    return f"{scheme}://{host}:{listener.getsockname()[1]}/"


async def serve(
    options: ConsoleOptions,
    security_of: Callable[[str | None], Security | None],
    listener: socket.socket,
    is_wanted: Callable[[], bool] = lambda: True,
) -> None:
    """Serve until the task is cancelled, as signals do, or until ``is_wanted`` says no.

    The listener takes connections already: they wait for the first moment of the server.
    """

    async def look() -> None:
        """End the server once it is not wanted any more; called every second."""
        server.should_exit = server.should_exit or not is_wanted()

    config = uvicorn.Config(
        make_app(options, security_of, lambda: server.should_exit),
        callback_notify=look,
        timeout_notify=1,
        lifespan="on",
        limit_concurrency=_CONNECTIONS_MAX,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ssl_certfile=options.certificate,
        ssl_keyfile=options.key,
        timeout_graceful_shutdown=_GRACE_S,
        ws="none",
    )
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    # The parts of ``Server.serve``, without its handlers of signals: those cancel this task.
    await server.startup(sockets=[listener])
    task = asyncio.current_task()
    assert task is not None
    try:
        if not server.should_exit:
            await server.main_loop()
    except asyncio.CancelledError:
        task.uncancel()
    server.should_exit = True
    if server.started:
        await server.shutdown(sockets=[listener])
