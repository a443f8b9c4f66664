"""One partition of a consumer: its place in the log, and the records fetched ahead of it.

``_positions`` has the theory of operation, and is the only one who changes it.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from aiosemel.types.consumer_records import ColumnBatch
from semel_common.errors import SemelError

B = TypeVar("B")


class OffsetReset(StrEnum):
    """Where to start when there is no offset to go on from; Kafka's names."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


class PositionState(StrEnum):
    """The state of a partition: the answer that it waits for."""

    AWAITING_COMMITTED = "AWAITING_COMMITTED"
    AWAITING_RESET = "AWAITING_RESET"
    FETCHING = "FETCHING"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk(Generic[B]):
    """One batch as it was fetched, or none: no records are there up to ``next_offset``."""

    batch: B | None
    size_bytes: int
    next_offset: int


class Opened(NamedTuple):
    """Opened records, and their size before and after decompression."""

    records: ColumnBatch
    size_bytes: int

    def slice(self, start: int, stop: int) -> "Opened":
        """Return the records at positions ``start`` to ``stop`` - 1, and their share."""
        count = len(self.records)
        return Opened(self.records.slice(start, stop), self.size_bytes * (stop - start) // count)


@dataclass(slots=True, kw_only=True)
class Partition(Generic[B]):
    """The state of one partition, and the records fetched ahead of it."""

    topic_id: str
    generation: int
    state: PositionState = PositionState.AWAITING_COMMITTED
    reset: OffsetReset
    position: int | None = None
    fetch_offset: int = 0
    chunks: deque[Chunk[B]] = field(default_factory=deque)
    buffered_bytes: int = 0
    opened: Opened | None = None
    """The records of the first chunk, once it was opened."""
    used: int = 0
    """How many of them the user has."""
    fault: SemelError | None = None
    asked: bool = False
    """Whether a question of this generation is on its way."""

    is_busy: bool = False
    """Whether a record arrived since a fetch last waited without a result."""
    paused: bool = False
    """Whether its user wants nothing of it for now, which no seek changes."""

    @property
    def waits(self) -> bool:
        """Whether there is something to ask for this partition."""
        return not self.asked and self.fault is None

    def restart(self, generation: int, state: PositionState) -> None:
        """Throw away everything that is known, or on its way."""
        self.generation = generation
        self.state = state
        self.position = self.opened = self.fault = None
        self.chunks.clear()
        self.buffered_bytes = self.used = 0
        self.asked = False

    def start_at(self, offset: int) -> None:
        """Read from an offset on."""
        self.state = PositionState.FETCHING
        self.position = self.fetch_offset = offset

    def append(self, chunk: Chunk[B]) -> None:
        """Take what was fetched at the fetch offset."""
        self.chunks.append(chunk)
        self.buffered_bytes += chunk.size_bytes
        self.fetch_offset = max(self.fetch_offset, chunk.next_offset)
        self.cross_gaps()

    def use_up(self) -> None:
        """Be done with the first chunk."""
        chunk = self.chunks.popleft()
        self.buffered_bytes -= chunk.size_bytes
        self.opened, self.used = None, 0
        self.position = max(self.position or 0, chunk.next_offset)
        self.cross_gaps()

    def cross_gaps(self) -> None:
        """Move the position past chunks that hold no records."""
        while self.chunks and self.chunks[0].batch is None:
            self.position = max(self.position or 0, self.chunks.popleft().next_offset)
