"""A record to be sent, as a value."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerRecord:
    """A record to be sent: the arguments of a ``send``."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None
    """None: the partition of the key, else any."""
    timestamp_ms: int | None = None
    """Milliseconds since 1970-01-01 UTC; None: now."""
