"""How much one producer may accumulate and send."""

from dataclasses import dataclass

IDLE_EPOCH_MS = 60_000
"""After so long without a batch, a partition goes on in an epoch of its own: brokers forget idle
producers, after a day by default, and then take sequence 0 only. A refusal would cost a round trip,
and the records themselves if the attempt before it was not answered."""

REQUESTS_IN_FLIGHT_MAX = 10
"""Unanswered requests of a producer at one broker. A broker that syncs answers several at once, and
five of them would let it wait for the next ones. Many more would delay other clients of the broker,
and wait for longer than ``request_timeout_ms`` on a slow line."""

PARTITIONS_IN_REQUEST = 1_000
"""So many a broker takes in one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of an accumulator; see ``ProducerOptions``."""

    batch_size_bytes: int
    request_size_max_bytes: int
    memory_bytes: int
    in_flight_max: int
    delivery_timeout_ms: int
