"""How the frames of one address find their way: over the port of its service, or over gRPC.

A service says by gRPC where its port is. The port counts as usable when it has answered a sign of
life: a mesh or a proxy may accept the connection, and then close it, be silent, or speak HTTP.
"""

import asyncio
from collections.abc import Awaitable, Callable

import grpc

from semel.common.v1.frames_pb2 import FramesPreface, OpenFramesResponse
from semel_common.addresses import PORT_MAX, is_host
from semel_common.client_errors import InvalidResponseError
from semel_common.library_log import get_logger
from semel_common.wire.channel_options import ChannelOptions
from semel_common.wire.client_security import ClientCredentials
from semel_common.wire.frames.frame_stream import Opened
from semel_common.wire.frames.grpc_pipe import GrpcPipe, StreamCall
from semel_common.wire.frames.pipe import Pipe, PipeUser
from semel_common.wire.frames.socket_pipe import ClientTls, connect
from semel_common.wire.frames.stream_messages import STREAMS

_log = get_logger(__name__)
_TICKET_MAX_BYTES = 4_096
_SHOWN_CHARACTERS = 100

Metadata = tuple[tuple[str, str], ...]


class FramesOpening:
    """Opens pipes to one address."""

    def __init__(
        self, address: str, options: ChannelOptions, credentials: ClientCredentials
    ) -> None:
        """Do no I/O yet."""
        self._address = address
        self._options = options
        self._credentials = credentials
        self._over_grpc_until: float | None = None
        """When to try the port again, in event-loop time (seconds); None: it was never useless."""

    async def open(
        self,
        service: str,
        offer: OpenFramesResponse,
        user: PipeUser,
        channel: Callable[[], Awaitable[grpc.aio.Channel]],
        metadata: Callable[[], Awaitable[Metadata]],
    ) -> Opened:
        """Open a pipe where an offer says, or else a stream of gRPC on the channel."""
        check_offer(offer, self._address)
        pipe = await self._connect(offer, user) if self._may_connect(offer) else None
        if pipe is None:
            proof = await metadata()
            call: StreamCall = (await channel()).stream_stream(STREAMS[service].path)(
                metadata=proof
            )
            pipe = GrpcPipe(call, user, self._address)
        return Opened(pipe, offer.max_idle_ms)

    def _may_connect(self, offer: OpenFramesResponse) -> bool:
        """Whether there is a port to try now. No proxy leads to it: a proxy passes on HTTP."""
        if not offer.port or self._options.goes_by_proxy(self._address):
            return False
        until = self._over_grpc_until
        return until is None or asyncio.get_running_loop().time() >= until

    async def _connect(self, offer: OpenFramesResponse, user: PipeUser) -> Pipe | None:
        """Connect to the port. None: it cannot be used now, and the log has one line on that."""
        host = offer.host or self._address.rpartition(":")[0].strip("[]")
        preface = FramesPreface(ticket=offer.ticket).SerializeToString()
        timeout_ms = self._options.frames_timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                pipe = await connect(
                    host, offer.port, preface, user, self._options.as_socket_options(), self._tls()
                )
        except TimeoutError:
            self._failed(host, offer.port, f"no answer in {timeout_ms:,} ms")
        except (OSError, UnicodeError) as error:  # UnicodeError: a host that no resolver takes
            self._failed(host, offer.port, str(error))
        else:
            self._over_grpc_until = None
            return pipe
        return None

    def _failed(self, host: str, port: int, why: str) -> None:
        """Use gRPC for a while; of failures without a success between them, log the first."""
        if self._over_grpc_until is None:
            _log.warning(
                "frames of %s go over gRPC, which is slower: their port %s:%d cannot be used (%s)",
                self._address,
                host,
                port,
                why,
            )
        pause_s = self._options.frames_pause_ms / 1000
        self._over_grpc_until = asyncio.get_running_loop().time() + pause_s

    def _tls(self) -> ClientTls | None:
        """Return how the socket is encrypted: if the channel is, and to the same server.

        Whose host it is says the server itself, so its name is the one that the channel is for.
        """
        certificates = self._credentials.certificates()
        if certificates is None:
            return None
        return ClientTls(certificates.context, self._credentials.server_name(self._address))


def check_offer(offer: OpenFramesResponse, address: str) -> None:
    """Raise InvalidResponseError for a place where nothing can be connected to."""
    wrong: dict[str, str | int] = {}
    if not 0 <= offer.port <= PORT_MAX:
        wrong = {"port": offer.port}
    elif offer.host and not is_host(offer.host):
        wrong = {"host": repr(offer.host[:_SHOWN_CHARACTERS])}
    elif len(offer.ticket) > _TICKET_MAX_BYTES:
        wrong = {"ticket": f"of {len(offer.ticket):,} bytes"}
    for field, value in wrong.items():
        raise InvalidResponseError(
            f"{address} answered OpenFrames with {field} {value}",
            address=address,
            rpc="OpenFrames",
            field=field,
        )
