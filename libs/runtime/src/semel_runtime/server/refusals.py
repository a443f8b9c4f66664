"""How a gRPC call ends with an error of the protocol, and leaves nothing of itself behind."""

from collections.abc import Sequence
from typing import Protocol

import grpc
from grpc_status import rpc_status

from semel_common.errors import SemelError
from semel_common.wire import status


class Refusable(Protocol):
    """A gRPC call that can be ended: its context, whatever its messages are."""

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: Sequence[tuple[str, str | bytes]] = (),
    ) -> None:
        """End it. Raises grpc.aio.AbortError."""
        ...


async def refuse(context: Refusable, error: SemelError) -> None:
    """End a call with an error; its handler has to return then.

    gRPC keeps the exception of an abort with the call, and raises it again when the handler
    returns. With the frames that the exception has passed it would keep the message, and the frames
    keep the call: only a run of the garbage collector would free them.
    """
    ended = rpc_status.to_status(status.to_status(error))
    try:
        await context.abort(ended.code, ended.details, ended.trailing_metadata)
    except grpc.aio.AbortError as stop:
        stop.__traceback__ = stop.__context__ = None
