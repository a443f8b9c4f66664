"""A guard that holds calls off while the volume of this instance may be an older copy.

The controller knows how far this journal went, and the other instances know how far the
controller's journal went. So an instance serves once it has registered since its start; from then
on it goes on without the controller.
"""

import asyncio
from collections.abc import Callable

from google.protobuf.message import Message

from semel_common.errors import CoordinatorLoadInProgressError
from semel_runtime.server.calls import Call, Endpoint, Guards


class Admission:
    """Stands before another guard, if there is one. Implements ``Guards``."""

    def __init__(
        self, inner: Guards | None, check: Callable[[Endpoint[Message, Message]], None]
    ) -> None:
        """Let ``check`` raise why a call cannot be answered yet."""
        self.inner = inner
        """The guard behind this one; None: nothing."""
        self._check = check

    async def answer(
        self, endpoint: Endpoint[Message, Message], request: Message, call: Call
    ) -> Message:
        """See ``Guards``."""
        self._check(endpoint)
        if self.inner is None:
            return await endpoint.handler(request, call)
        return await self.inner.answer(endpoint, request, call)


def check_registered(registered: asyncio.Event) -> None:
    """Raise CoordinatorLoadInProgressError unless the instance has registered since its start."""
    if not registered.is_set():
        raise CoordinatorLoadInProgressError(
            "this instance has not registered with the controller since its start: only the"
            " controller knows whether its volume is the newest"
        )
