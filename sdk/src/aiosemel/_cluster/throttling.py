"""Quotas, honoured: after an answer that says so, an address is asked nothing for a while.

Services answer first, and say with ``throttle_time_ms`` how long their caller is to wait (Kafka
mutes the channel alike). All requests of a client to that address wait, within their own time-outs,
but those of ``NEVER_THROTTLED``: the end of a transaction waits for no quota.

A service whose disk is below its reserve refuses new data with the same error. The log is told of
it at once: records wait for an operator then, until their time-out.
"""

import asyncio

from semel_common.errors import RequestTimedOutError, ThrottlingQuotaExceededError
from semel_common.library_log import get_logger
from semel_common.untrusted_text import natural_number
from semel_common.wire.connection import Connection, Connector
from semel_common.wire.messages.message_pieces import Outgoing
from semel_common.wire.methods import NEVER_THROTTLED, Method, Req, Res

_log = get_logger(__name__)

_THROTTLE_TIME = "throttle_time_ms"
_DISK = "disk_reserve_bytes"
"""The detail of an error that is about a disk."""
_WARN_AGAIN_S = 60.0

THROTTLE_TIME_MAX_MS = 60_000
"""The longest time that an answer can keep an address from being asked: no server is believed that
wants its clients to be silent for days. The next answer may say so again."""


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
            # Some connectors make one object for each call; a task that waits for an address goes
            # on waiting.
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
        self._warned_at = float("-inf")

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
            if _DISK in error.details:
                self._warn(error)
            self._mute(natural_number(error.details.get(_THROTTLE_TIME, "")) or 0)
            raise
        throttle_time_ms: int = getattr(response, _THROTTLE_TIME, 0)
        if throttle_time_ms:
            self._mute(throttle_time_ms)
        return response

    def _warn(self, error: ThrottlingQuotaExceededError) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._warned_at >= _WARN_AGAIN_S:
            self._warned_at = now
            _log.warning("%s", error.message)

    def _mute(self, throttle_time_ms: int) -> None:
        if throttle_time_ms > 0:
            muted_ms = min(throttle_time_ms, THROTTLE_TIME_MAX_MS)
            until = asyncio.get_running_loop().time() + muted_ms / 1000
            self.muted_until = max(self.muted_until, until)

    async def _wait(self, timeout_ms: int) -> int:
        """Wait until the address may be asked; return the rest of a time-out."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while (wait_s := self.muted_until - loop.time()) > 0:
            left_s = begun + timeout_ms / 1000 - loop.time()
            if wait_s >= left_s:
                await asyncio.sleep(max(0.0, left_s))
                raise RequestTimedOutError(
                    f"the quota asks for a pause of {wait_s * 1000:.0f} ms, longer than the"
                    f" remaining time-out of {max(0.0, left_s) * 1000:.0f} ms"
                )
            await asyncio.sleep(wait_s)
        self.muted_until = 0.0
        return max(1, timeout_ms - int((loop.time() - begun) * 1000))
