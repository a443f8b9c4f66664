"""Why calls to one address have failed or have no answer: what users and logs are told.

A call that fails below Semel's own errors is explained by a probe. The first call to an address is
not waited for in silence: when it has no answer soon, a probe looks, and one warning says what it
finds, long before the call ends.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from semel_common.errors import NetworkExceptionError, RequestTimedOutError, SemelError
from semel_common.library_log import get_logger
from semel_common.wire import status
from semel_common.wire.channel_options import ChannelOptions
from semel_common.wire.client_security import ClientCredentials
from semel_common.wire.diagnosis.peer_probe import PROBE_TIMEOUT_MS, PeerProbe
from semel_common.wire.diagnosis.service_names import service_at

_log = get_logger(__name__)
_LOST = NetworkExceptionError
"""The error of a call that gRPC has ended without a word of a service."""


SERVICE = "service"
"""The detail of an error that names the service at an address, when it is not the right one."""


class CallTrouble:
    """Explains the calls to one address."""

    def __init__(
        self, address: str, options: ChannelOptions, credentials: ClientCredentials
    ) -> None:
        """Do no I/O yet."""
        self._address = address
        self._options = options
        self._credentials = credentials
        self._probe = PeerProbe(address)
        self._is_probed = not options.goes_by_proxy(address)
        self._was_answered = False
        self._waiting = 0
        self._look: asyncio.Task[None] | None = None

    def answered(self) -> None:
        """Know that a service is there."""
        self._was_answered = True

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look for the cause if a call to an address that never answered has no answer soon."""
        if self._was_answered or not self._is_probed:
            yield
            return
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._options.probe_after_ms / 1000, self._begin_look)
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            timer.cancel()

    async def explained(
        self, failed: grpc.aio.AioRpcError, rpc: str, channel: grpc.aio.Channel, left_ms: int
    ) -> SemelError:
        """Return the error of a call that failed, with its cause; takes ``left_ms`` at most."""
        error = status.from_rpc_error(failed, self._address)
        if isinstance(error, RequestTimedOutError):
            return self.late(error)
        if type(error) is not _LOST:
            self.answered()
        elif failed.code() is grpc.StatusCode.UNIMPLEMENTED:
            return await self._another_service(error, rpc, channel, left_ms)
        elif failed.code() is grpc.StatusCode.UNAVAILABLE and self._is_probed:
            return await self._trouble(left_ms) or error
        return error

    def late(self, error: RequestTimedOutError) -> RequestTimedOutError:
        """Return the error of an unanswered call, with the cause if the probe knows it."""
        found = self._probe.found
        if found is None or self._was_answered:
            return error
        return RequestTimedOutError(f"{error.message}: {found.message}", **error.details)

    async def close(self) -> None:
        """End what is under way."""
        if self._look is not None:
            self._look.cancel()
        await self._probe.close()

    async def _trouble(self, timeout_ms: int | None) -> NetworkExceptionError | None:
        certificates = self._credentials.certificates()
        contexts = None if certificates is None else certificates.probing
        name = self._credentials.server_name(self._address)
        return await self._probe.trouble(contexts, name, timeout_ms)

    async def _another_service(
        self, error: SemelError, rpc: str, channel: grpc.aio.Channel, left_ms: int
    ) -> SemelError:
        """Say which service is at the address, if it is one of Semel's."""
        found = await service_at(channel, min(left_ms, PROBE_TIMEOUT_MS))
        if found is None:
            return error
        return NetworkExceptionError(
            f"{self._address} is the address of a {found}, and {rpc} belongs to another service",
            address=self._address,
            **{SERVICE: found},
        )

    def _begin_look(self) -> None:
        if self._look is None:
            self._look = asyncio.create_task(self._warn(), name=f"look at {self._address}")

    async def _warn(self) -> None:
        trouble = await self._trouble(None)
        if trouble is not None and self._waiting and not self._was_answered:
            _log.warning("no answer yet, still trying: %s", trouble.message)
