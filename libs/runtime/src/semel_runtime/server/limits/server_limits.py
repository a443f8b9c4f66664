"""What a server takes at most. ``shares`` divides what all callers have together."""

from dataclasses import dataclass

from semel_common.wire.messages.request_bounds import MESSAGE_SIZE_MAX_BYTES
from semel_common.wire.messages.response_parsing import ANSWER_SIZE_MAX_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of the listeners of one process."""

    message_size_max_bytes: int = MESSAGE_SIZE_MAX_BYTES
    """The largest message taken."""
    answer_size_max_bytes: int = ANSWER_SIZE_MAX_BYTES
    """The largest gRPC message sent."""
    stream_in_flight_max_bytes: int = 64 << 20
    """Bytes of requests that are not answered, and of answers that are not written, on one stream;
    past it, the stream is not read."""
    in_flight_max_bytes: int = 256 << 20
    """The same for all streams together, with large messages that are still arriving, counted with
    their announced size; past a caller's share, the streams of this caller are not read."""
    write_timeout_ms: int = 30_000
    """How long one message of answers may take to be written; past it, the stream is ended."""
    arrival_timeout_ms: int = 60_000
    """How long one message may take to arrive; past it, its stream is ended, its call refused."""
    stream_in_flight_requests_max: int = 4_096
    """Unanswered requests on one stream; past it, the stream is not read."""
    requests_in_flight_max: int = 32_000
    """Unanswered requests of all callers, unary calls included; past a caller's share, the streams
    of this caller are not read, and its unary calls are refused."""
    streams_max: int = 2_000
    """Open frame streams; one more is refused."""
    connections_max_idle_ms: int = 600_000
    """How long a frame stream without a request, or a gRPC connection without a call, stays."""
    visitors_max: int = 2_000
    """Connections for frames that have not shown their ticket yet; one more ends the oldest of the
    address that has most."""
    visitors_per_address_max: int = 200
    """The same for one address; one more ends the oldest of this address."""
    handshake_timeout_ms: int = 10_000
    """How long a new connection may take for its TLS handshake, and to show its ticket or begin
    HTTP/2; a ticket is good for as long."""
    grpc_connections_max: int = 4_000
    """gRPC connections of one listener; one more is closed by gRPC at once."""
    grpc_connections_per_address_max: int = 2_000
    """gRPC connections of one address to all listeners; more are ended within a second."""
    concurrent_calls_max: int = 8_000
    """Open gRPC calls of one listener, streams included, and as many that gRPC has received and
    the server has not begun, some 16 KiB each; gRPC itself refuses one more."""
    connection_calls_max: int = 5_000
    """Open gRPC calls of one connection; gRPC's clients let one more wait. More than a caller's
    share of the calls: so the server answers a call over the share with the cause, before gRPC
    resets it without one."""
    principal_share_percent: int = 50
    """How much of the streams, requests and bytes in flight one principal may take, in percent;
    without authentication, one address."""
    cluster_reserve_percent: int = 10
    """How much of the streams, requests and bytes in flight only the cluster's own principals may
    take, in percent."""
    long_poll_max_ms: int = 60_000
    """How long a Fetch or a Metadata call may wait, whatever its ``max_wait_ms`` says."""
    ping_interval_min_ms: int = 10_000
    """How often an idle client may ping; gRPC ends the connection of a client that pings more
    often. Less than every client's keepalive time."""
