"""How connections are made: sizes, times, and the way through a proxy."""

from dataclasses import dataclass

from semel_common.addresses import is_loopback
from semel_common.wire.client_tokens import TOKEN_MAX_BYTES
from semel_common.wire.frames.socket_pipe import SocketOptions
from semel_common.wire.messages.response_parsing import (
    ANSWER_SIZE_MAX_BYTES,
    ELEMENTS_MAX,
    AnswerBounds,
)

DIRECT = ("grpc.enable_http_proxy", 0)
"""The option of a gRPC channel that goes by no proxy. By default, gRPC takes one from the
environment, even for connections to the loopback."""
METADATA_MAX_BYTES = TOKEN_MAX_BYTES + 8_192
"""The most metadata of a call or an answer: the longest token, and what clients, meshes and proxies
add to it."""
METADATA_LIMITS = (
    # The first is soft, 8 KiB by default: between the two, gRPC rejects calls at random.
    ("grpc.max_metadata_size", METADATA_MAX_BYTES),
    ("grpc.absolute_max_metadata_size", METADATA_MAX_BYTES),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelOptions:
    """How channels are made."""

    message_size_max_bytes: int = ANSWER_SIZE_MAX_BYTES
    """The largest message that is sent or taken. A service refuses requests before they are so
    large, and a cluster's metadata may come to it."""
    message_elements_max: int = ELEMENTS_MAX
    """How many fields, at all levels, and numbers in lists a message may hold that is taken. An
    element takes up to some 300 bytes of memory, so a message of few bytes may take much."""
    reconnect_backoff_max_ms: int = 1_000
    """How long gRPC waits at most between attempts to connect."""
    resolution_interval_ms: int = 1_000
    """How long a name's address is used at least, when it cannot be reached there."""
    attempt_timeout_ms: int = 3_000
    """How long one such attempt may take: TCP, TLS and the first bytes of HTTP/2."""
    keepalive_time_ms: int = 30_000
    """How long a connection is silent before it is probed."""
    keepalive_timeout_ms: int = 10_000
    """How long the answer to a probe may take before the connection counts as lost."""
    connect_timeout_ms: int = 10_000
    """How long the question where a service takes frames may take."""
    frames_timeout_ms: int = 3_000
    """How long the port for frames may take to accept a connection and to answer on it. Then
    frames go over gRPC."""
    frames_pause_ms: int = 30_000
    """How long new frame streams go over gRPC after the port for frames could not be used."""
    probe_after_ms: int = 250
    """How long the first call to an address may have no answer before a probe looks for the
    cause."""
    use_proxy: bool = False
    """Whether connections to other machines go by the proxy that the environment names
    (``http_proxy``, ``https_proxy``, ``grpc_proxy``). Connections to the loopback never do."""
    refused_stream_pause_ms: int = 30_000
    """How long calls are unary after a server has refused a frame stream for its limits."""

    def as_bounds(self) -> AnswerBounds:
        """Return the bounds of the answers that the client takes."""
        return AnswerBounds(
            size_max_bytes=self.message_size_max_bytes, elements_max=self.message_elements_max
        )

    def as_socket_options(self) -> SocketOptions:
        """Return the same for the connection that carries frames."""
        return SocketOptions(
            message_size_max_bytes=self.message_size_max_bytes,
            silence_max_s=self.keepalive_time_ms / 1000,
            answer_max_s=self.keepalive_timeout_ms / 1000,
        )

    def goes_by_proxy(self, address: str) -> bool:
        """Whether a connection to an address may go by a proxy."""
        return self.use_proxy and not is_loopback(address.rpartition(":")[0])

    def as_channel_arguments(self, address: str) -> list[tuple[str, int]]:
        """Return gRPC's own names and values."""
        return [
            *(() if self.goes_by_proxy(address) else (DIRECT,)),
            ("grpc.max_send_message_length", self.message_size_max_bytes),
            ("grpc.max_receive_message_length", self.message_size_max_bytes),
            *METADATA_LIMITS,
            ("grpc.initial_reconnect_backoff_ms", 50),
            # No backoff in spite of its name: the least time that an attempt is given.
            ("grpc.min_reconnect_backoff_ms", self.attempt_timeout_ms),
            ("grpc.max_reconnect_backoff_ms", self.reconnect_backoff_max_ms),
            # By default 30 s, in which a restarted pod would be looked for where it was.
            ("grpc.dns_min_time_between_resolutions_ms", self.resolution_interval_ms),
            ("grpc.keepalive_time_ms", self.keepalive_time_ms),
            ("grpc.keepalive_timeout_ms", self.keepalive_timeout_ms),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            # Two connectors of one process must not share a connection: each closes its own.
            ("grpc.use_local_subchannel_pool", 1),
        ]
