"""The segments of one log: retention deletes old records segment by segment.

Theory of operation. A segment is not stored; it is the memory of a range of offsets: its size, and
the time of its last append. So retention is decided without a look at the store (``retention.py``).
An append decides whether a segment begins, by the topic's options of that time.
"""

from collections import deque
from collections.abc import Iterator

from msgspec.structs import replace

from semel_broker.machine.records import LogSegment
from semel_runtime.cluster.topic_options import TopicConfig

BATCH_OVERHEAD_BYTES = 100
"""What a batch takes in the store beside its payload, about."""


class Segments:
    """The segments of one log, the oldest first."""

    __slots__ = ("_closed", "_last", "_last_ms", "_size_bytes", "total_bytes")

    def __init__(self) -> None:
        self._closed: deque[LogSegment] = deque()
        self._last: LogSegment | None = None
        # What changes with every append is kept beside the last segment, not in a new one.
        self._size_bytes = 0
        self._last_ms = 0
        self.total_bytes = 0
        """Of all segments."""

    def __iter__(self) -> Iterator[LogSegment]:
        yield from self._closed
        if self._last is not None:
            yield self._present(self._last)

    def is_full(self, config: TopicConfig, now_ms: int) -> bool:
        """Whether the next append begins a segment."""
        if self._last is None:
            return False  # It begins one in any case.
        return (
            self._size_bytes >= config.segment_bytes
            or now_ms - self._last.start_ms >= config.segment_ms
        )

    def put(self, segment: LogSegment) -> None:
        """Begin a segment, or take one from a snapshot."""
        if self._last is not None:
            self._closed.append(self._present(self._last))
        self._last = segment
        self._size_bytes, self._last_ms = segment.size_bytes, segment.last_ms
        self.total_bytes += segment.size_bytes

    def grow(self, size_bytes: int, now_ms: int) -> None:
        """Note an append to the last segment, which is there."""
        self._size_bytes += size_bytes
        self.total_bytes += size_bytes
        self._last_ms = max(self._last_ms, now_ms)

    @property
    def is_empty(self) -> bool:
        """Whether there is no segment."""
        return self._last is None

    def drop_below(self, log_start_offset: int, *, log_end_offset: int) -> None:
        """Forget the segments that lie below the start of the log as a whole."""
        while self._closed and self._end_of_first() <= log_start_offset:
            self.total_bytes -= self._closed.popleft().size_bytes
        if not self._closed and log_end_offset <= log_start_offset:
            self._last, self._size_bytes, self.total_bytes = None, 0, 0

    def shrink(self, upto: int, size_bytes: int) -> None:
        """Note that what lies below an offset takes so much, since it is compacted.

        The shares of the segments are not counted: each gets the same part.
        """
        ends = [each.base_offset for each in self][1:]
        below = sum(end <= upto for end in ends)
        before_bytes = sum(self._closed[number].size_bytes for number in range(below))
        if size_bytes >= before_bytes:
            return
        for number in range(below):
            segment = self._closed[number]
            share_bytes = segment.size_bytes * size_bytes // before_bytes
            self._closed[number] = replace(segment, size_bytes=share_bytes)
            self.total_bytes -= segment.size_bytes - share_bytes

    def _end_of_first(self) -> int:
        if len(self._closed) > 1:
            return self._closed[1].base_offset
        assert self._last is not None, "the last segment is never a closed one"
        return self._last.base_offset

    def _present(self, last: LogSegment) -> LogSegment:
        return replace(last, size_bytes=self._size_bytes, last_ms=self._last_ms)
