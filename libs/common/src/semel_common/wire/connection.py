"""What a caller sees of the network: connections to addresses. Implemented by gRPC and by tests."""

from typing import Protocol

from semel_common.wire.messages.message_pieces import Outgoing
from semel_common.wire.methods import Method, Req, Res


class Connection(Protocol):
    """Calls to one address. Safe to share; calls do not wait for one another."""

    async def call(
        self,
        method: Method[Req, Res],
        request: Outgoing[Req],
        *,
        timeout_ms: int,
        traceparent: str = "",
        cluster_id: str = "",
    ) -> Res:
        """Make one call and return its answer. ``traceparent`` goes with it, if there is one.

        ``cluster_id`` names the cluster that the call is for; a service of another cluster refuses
        it with InconsistentClusterIdError. Empty: the call is for the cluster of the service.
        Raises the SemelError that the service answered; RequestTimedOutError when no answer came in
        ``timeout_ms``, NetworkExceptionError when the connection broke: after either, the request
        may have taken effect.
        """
        ...


class Connector(Protocol):
    """Gives connections, one for each address, made when first asked for."""

    def connect(self, address: str) -> Connection:
        """Return the connection to an address, ``host:port``. Does no I/O."""
        ...

    async def close(self) -> None:
        """Close all connections; calls in flight fail with NetworkExceptionError."""
        ...
