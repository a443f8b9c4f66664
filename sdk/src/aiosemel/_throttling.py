"""Quotas, honoured: after an answer that says so, an address is asked nothing for a while.

Services answer first, and say with ``throttle_time_ms`` how long their caller is to wait (Kafka
mutes the channel alike). All requests of a client to that address wait, within their own time-outs,
but those of ``NEVER_THROTTLED``: the end of a transaction waits for no quota.
"""

import asyncio

from semel_common.errors import RequestTimedOutError, ThrottlingQuotaExceededError
from semel_common.wire.connection import Connection, Connector
from semel_common.wire.methods import NEVER_THROTTLED, Method, Req, Res
from semel_common.wire.pieces import Outgoing

_THROTTLE_TIME = "throttle_time_ms"


class ThrottledConnector:
    """Gives connections that wait when they are told to. Implements ``Connector``."""

    def __init__(self, connector: Connector) -> None:
        """Connect as this one does; it is not closed."""
        self._connector = connector
        self._connections: dict[str, ThrottledConnection] = {}

    def connect(self, address: str) -> "ThrottledConnection":
        """Return the connection to an address."""
        connection = self._connector.connect(address)
        known = self._connections.get(address)
        if known is None or known.inner is not connection:
            # Some connectors make one for each call: who waits for an address goes on waiting.
            muted_until = 0.0 if known is None else known.muted_until
            known = self._connections[address] = ThrottledConnection(connection, muted_until)
        return known

    async def close(self) -> None:
        """Close nothing: the connector is another's."""


class ThrottledConnection:
    """Calls to one address. Implements ``Connection``."""

    def __init__(self, inner: Connection, muted_until: float) -> None:
        """Wait until ``muted_until``, in event-loop time, before the first call."""
        self.inner = inner
        self.muted_until = muted_until

    async def call(
        self,
        method: Method[Req, Res],
        request: Outgoing[Req],
        *,
        timeout_ms: int,
        traceparent: str = "",
        cluster_id: str = "",
    ) -> Res:
        """Make one call, as soon as the service wants to hear it; see ``Connection.call``."""
        if self.muted_until and method.path not in NEVER_THROTTLED:
            timeout_ms = await self._wait(timeout_ms)
        try:
            response = await self.inner.call(
                method,
                request,
                timeout_ms=timeout_ms,
                traceparent=traceparent,
                cluster_id=cluster_id,
            )
        except ThrottlingQuotaExceededError as error:
            self._mute(int(error.details.get(_THROTTLE_TIME, "0")))
            raise
        throttle_time_ms: int = getattr(response, _THROTTLE_TIME, 0)
        if throttle_time_ms:
            self._mute(throttle_time_ms)
        return response

    def _mute(self, throttle_time_ms: int) -> None:
        if throttle_time_ms > 0:
            until = asyncio.get_running_loop().time() + throttle_time_ms / 1000
            self.muted_until = max(self.muted_until, until)

    async def _wait(self, timeout_ms: int) -> int:
        """Wait until the address may be asked; return what is left of a time-out."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while (wait_s := self.muted_until - loop.time()) > 0:
            left_s = begun + timeout_ms / 1000 - loop.time()
            if wait_s >= left_s:
                await asyncio.sleep(max(0.0, left_s))
                raise RequestTimedOutError(
                    f"the quota leaves no time: {wait_s * 1000:.0f} ms to wait of {timeout_ms} ms"
                )
            await asyncio.sleep(wait_s)
        self.muted_until = 0.0
        return max(1, timeout_ms - int((loop.time() - begun) * 1000))
