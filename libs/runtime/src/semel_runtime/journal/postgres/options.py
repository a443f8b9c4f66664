"""What can be set on the PostgreSQL engine."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Replication: TypeAlias = Literal["required", "wanted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresOptions:
    """Limits of one journal."""

    replication: Replication = "required"
    """Whether a server that does not replicate each commit is refused, or only warned of."""
    append_bytes_max: int = 64 * 1024 * 1024
    """Bytes in one append, or in one piece of a snapshot."""
    append_batches_max: int = 4_096
    """Record batches in one append."""
    readers_max: int = 4
    """Connections that read, at most."""
    open_timeout_ms: int = 60_000
    """How long to wait at opening for a server that cannot be reached, or is no primary yet."""
    connect_timeout_ms: int = 10_000
    """How long a connection may take to be made."""
    write_timeout_ms: int = 30_000
    """How long a write may take, which includes that a standby confirms it, before its connection
    is ended and its outcome is unknown."""
    read_timeout_ms: int = 30_000
    """How long one bounded query may take."""
