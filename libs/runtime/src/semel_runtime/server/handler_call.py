"""Running a handler: the one place where what it raises becomes an error of the protocol.

Every request comes through here, whatever transport carries it; so the guard stands here too.
"""

import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import structlog
from google.protobuf.message import Message

from semel_common.error_codes import ErrorCode
from semel_common.errors import SemelError, UnknownServerError
from semel_runtime.server.calls import Call, Endpoint
from semel_runtime.server.item_errors import errors_in

log = structlog.get_logger(__name__)

Answer: TypeAlias = Callable[[Endpoint[Message, Message], Message, Call], Awaitable[Message]]
"""``answer``, or what is around it."""


async def answer(endpoint: Endpoint[Message, Message], request: Message, call: Call) -> Message:
    """Return the handler's response.

    A proof of identity that has run out, in a stream that was let in with it, is no proof.
    Raises SemelError only: anything else is logged with its traceback and becomes
    UnknownServerError, which tells the caller the kind of exception, but nothing of its contents.
    """
    if endpoint.metrics is None:
        return await _answer(endpoint, request, call)
    started = time.perf_counter()
    try:
        response = await _answer(endpoint, request, call)
    except SemelError as error:
        endpoint.metrics.refused(error.code.name)
        raise
    else:
        for code in {error.code for error in errors_in(response)}:
            endpoint.metrics.refused(ErrorCode(code).name)
        return response
    finally:
        endpoint.metrics.answered(time.perf_counter() - started)


async def _answer(endpoint: Endpoint[Message, Message], request: Message, call: Call) -> Message:
    try:
        call.origin.principal.check_not_expired(time.time())
        if endpoint.turns is None:
            return await _guarded(endpoint, request, call)
        async with endpoint.turns.turn(call.origin):
            return await _guarded(endpoint, request, call)
    except SemelError as error:
        log.debug(
            "request refused",
            method=endpoint.method.name,
            code=error.code.name,
            error=error.message,
        )
        raise
    except Exception as error:
        raise unknown_failure(endpoint, error) from error


async def _guarded(endpoint: Endpoint[Message, Message], request: Message, call: Call) -> Message:
    if endpoint.guard is None:
        return await endpoint.handler(request, call)
    return await endpoint.guard.answer(endpoint, request, call)


def unknown_failure(endpoint: Endpoint[Message, Message], error: Exception) -> UnknownServerError:
    """Log an error that is no SemelError; return what its caller is told."""
    log.error("handler failed", method=endpoint.method.name, exc_info=error)
    error.__traceback__ = None  # Its frames hold the request, and perhaps one another.
    return UnknownServerError(
        f"{endpoint.method.name} failed with {type(error).__name__}; see the server's log"
    )
