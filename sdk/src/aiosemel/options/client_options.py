"""Options of users: Kafka's names and defaults, each with its unit. Conflicts are refused.

Options are values, checked when they are made: an option that cannot work never reaches a server.
"""

from dataclasses import dataclass
from enum import StrEnum

from aiosemel.errors import InvalidConfigError
from aiosemel.options.option_checks import (
    check_choice,
    check_client_id,
    check_order,
    check_values,
)
from semel_common.record_batches.payload_limits import OPENED_MAX_BYTES


class Compression(StrEnum):
    """How the payloads of record batches are compressed."""

    NONE = "none"
    ZSTD = "zstd"
    """Needs the extra ``aiosemel[zstd]``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """Options of a client, and of every object that it makes."""

    request_timeout_ms: int = 30_000
    """How long one attempt of a request may take, in milliseconds."""
    default_api_timeout_ms: int = 60_000
    """How long a call without a time-out of its own may take with all its attempts, in
    milliseconds: calls of the admin client, and of a consumer."""
    retry_backoff_ms: int = 100
    """The pause before a request is sent again, in milliseconds; doubled at every attempt."""
    retry_backoff_max_ms: int = 1_000
    """The longest such pause, in milliseconds."""
    metadata_max_age_ms: int = 300_000
    """How old metadata may become before it is asked for again, in milliseconds."""
    cluster_id: str | None = None
    """The id of the cluster that the client is for, as ``semel cluster describe`` shows it; another
    cluster refuses the client's first call. None: the client is for the cluster that answers first.
    Either way the client belongs to one cluster for its whole life."""
    client_id: str = ""
    """A name of the program, such as ``billing-3``: operators see it with its transactions and with
    its members of groups. Up to 64 letters, digits, dots, hyphens and underscores; empty: none."""
    use_proxy: bool = False
    """Whether connections go by the proxy that the environment names (``http_proxy``,
    ``https_proxy``, ``grpc_proxy``; ``no_proxy`` and ``no_grpc_proxy`` name exceptions). Records
    then take gRPC, which is slower than frames. Connections to the loopback never go by a proxy."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, with InvalidConfigError."""
        may_be_zero = ("retry_backoff_ms", "retry_backoff_max_ms")
        check_values(self, may_be_zero=may_be_zero, in_requests=("request_timeout_ms",))
        check_order(self, "retry_backoff_ms", "retry_backoff_max_ms")
        check_client_id(self.client_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions:
    """Options of one producer."""

    request_timeout_ms: int = 30_000
    """How long one attempt of a request may take, in milliseconds."""
    delivery_timeout_ms: int = 120_000
    """How long a record may wait for its acknowledgement, from ``send`` on and with all attempts,
    in milliseconds."""
    max_block_ms: int = 60_000
    """How long a call may wait, in milliseconds: ``send`` for metadata and for room in the buffer,
    the calls of transactions for their answer."""
    waits_for_topics: bool = True
    """Whether ``send`` waits for a topic that does not exist, up to ``max_block_ms``. If not, it
    raises TopicNotFoundError as soon as the controller says that it knows no such topic."""
    batch_size_bytes: int = 262_144
    """When a batch of single records is full, in bytes; a topic with a lower ``max.message.bytes``
    gets smaller batches. A batch waits for an answer only, never to become full. Kafka's default is
    16384; in Python, larger batches cost less."""
    max_request_size_bytes: int = 1_000_000
    """The largest request, batch and record, in bytes before compression: at most 16 MiB, which is
    what readers open. Brokers have a limit of their own, on what arrives."""
    buffer_memory_bytes: int = 33_554_432
    """How much may wait for acknowledgement, in bytes; then ``send`` waits."""
    max_in_flight: int = 5
    """How many batches of a partition may be sent but not acknowledged, 1 to 5. Fewer batches lower
    the latency of other clients of a busy broker, and the rate of this producer."""
    compression: Compression = Compression.NONE
    """How payloads are compressed."""
    transaction_timeout_ms: int = 60_000
    """How long a transaction may stay open before the coordinator aborts it, in milliseconds. Of a
    transactional producer."""
    registration_delay_ms: int = 250
    """How long a transaction lasts before the client registers its participants with the
    coordinator, so that operators see it, in milliseconds. Shorter ones are never registered: their
    end names the participants. This option is for transactional producers; writers of joint
    transactions register at once.
    """
    cancelled_commit_grace_ms: int = 1_000
    """How long a commit that is cancelled after it was sent may go on to learn its outcome, in
    milliseconds. Of a transactional producer, and of the owner of a joint transaction, who also
    waits so long for the abort of a cancelled block."""

    close_timeout_ms: int = 5_000
    """How long a producer without transactions waits for records that are not stored yet when an
    exception leaves its block, or its client's, in milliseconds; and how long a transactional
    producer waits for the abort of its open transaction when it is closed."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, with InvalidConfigError."""
        may_be_zero = ("registration_delay_ms", "cancelled_commit_grace_ms", "close_timeout_ms")
        in_requests = ("request_timeout_ms", "transaction_timeout_ms")
        check_values(self, may_be_zero=may_be_zero, in_requests=in_requests)
        check_choice("compression", self.compression, Compression)
        if self.max_in_flight > MAX_IN_FLIGHT_LIMIT:
            raise InvalidConfigError(
                f"max_in_flight is {self.max_in_flight}, not 1 to {MAX_IN_FLIGHT_LIMIT}"
            )
        if self.max_request_size_bytes > MAX_REQUEST_SIZE_LIMIT_BYTES:
            raise InvalidConfigError(
                f"max_request_size_bytes is {self.max_request_size_bytes}, more than"
                f" {MAX_REQUEST_SIZE_LIMIT_BYTES}: brokers open no larger batch"
            )
        check_order(self, "request_timeout_ms", "delivery_timeout_ms")
        check_order(self, "batch_size_bytes", "max_request_size_bytes")
        check_order(self, "max_request_size_bytes", "buffer_memory_bytes")


MAX_IN_FLIGHT_LIMIT = 5
"""Brokers remember the last 5 batches of a producer: a repeat of an older one is not recognised."""

MAX_REQUEST_SIZE_LIMIT_BYTES = OPENED_MAX_BYTES
"""The largest ``max_request_size_bytes``: brokers open no larger batch."""
