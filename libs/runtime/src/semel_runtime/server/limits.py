"""What a server takes at most."""

from dataclasses import dataclass

from semel_common.wire.bounds import ANSWER_SIZE_MAX_BYTES, MESSAGE_SIZE_MAX_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of one listener."""

    message_size_max_bytes: int = MESSAGE_SIZE_MAX_BYTES
    """The largest message taken."""
    answer_size_max_bytes: int = ANSWER_SIZE_MAX_BYTES
    """The largest gRPC message sent."""
    stream_in_flight_max_bytes: int = 64 << 20
    """Bytes of requests that are not answered, and of answers that are not written, on one stream;
    past it, the stream is not read."""
    write_timeout_ms: int = 30_000
    """How long one message of answers may take to be written; past it, the stream is ended."""
    stream_in_flight_requests_max: int = 4_096
    """Unanswered requests on one stream; past it, the stream is not read."""
    streams_max: int = 2_000
    """Open frame streams; one more is refused."""
    visitors_max: int = 2_000
    """Connections for frames that have not shown their ticket yet; one more sends away the one that
    has been there longest."""
    concurrent_calls_max: int = 8_000
    """Open calls, streams included; one more is refused by gRPC itself."""
    ping_interval_min_ms: int = 10_000
    """How often an idle client may ask whether the server is there; gRPC sends away who asks more
    often. Less than every client's keepalive time."""
