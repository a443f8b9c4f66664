"""Retention: which old records a log keeps, by ``retention.ms`` and ``retention.bytes``. Pure.

Retention deletes whole segments, the oldest first, and no segment that reaches past the last stable
offset. The age of a segment is the time since its last append, not since the timestamps of its
records: a user that imports records from last year wants to keep them, too.
"""

from semel_broker.machine.log.segments import Segments
from semel_runtime.cluster.topic_options import TopicConfig


def retained_from(
    segments: Segments,
    config: TopicConfig,
    *,
    last_stable_offset: int,
    log_end_offset: int,
    now_ms: int,
) -> int:
    """Return the offset of the first record that the log keeps; 0 if it keeps all records."""
    offset, left_bytes = 0, segments.total_bytes
    if not config.cleanup_policy.deletes:
        return offset
    oldest_first = list(segments)
    ends = [*(each.base_offset for each in oldest_first[1:]), log_end_offset]
    for segment, end in zip(oldest_first, ends, strict=False):
        left_bytes -= segment.size_bytes
        too_old = 0 <= config.retention_ms < now_ms - segment.last_ms
        too_much = 0 <= config.retention_bytes <= left_bytes
        if end > last_stable_offset or not (too_old or too_much):
            break
        offset = end
    return offset
