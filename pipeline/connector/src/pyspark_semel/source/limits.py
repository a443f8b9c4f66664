"""How much one micro-batch reads: ``maxOffsetsPerTrigger``, ``minOffsetsPerTrigger``. No I/O."""

import math
from dataclasses import dataclass, replace

from pyspark_semel.source.offsets import Positions


def size(begins: Positions, ends: Positions) -> int:
    """Return how many offsets lie between; both have the same partitions."""
    return sum(max(0, end - begins[each]) for each, end in ends.items())


def cap(begins: Positions, ends: Positions, maximum: int) -> Positions:
    """Return ends that are at most ``maximum`` offsets away, each partition in proportion.

    As in Kafka's source, every partition that has anything moves on, if only by one: so it is more
    than ``maximum`` if more partitions have something to read.
    """
    total = size(begins, ends)
    if total <= maximum:
        return ends
    moving = sum(end > begins[each] for each, end in ends.items())
    spare, rest = max(0, maximum - moving), max(1, total - moving)
    return {
        each: begins[each] + 1 + spare * (end - begins[each] - 1) // rest
        if end > begins[each]
        else end
        for each, end in ends.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Waits for enough offsets, but not longer than ``max_delay`` seconds."""

    max_delay: float
    since: float = -math.inf
    """When the last micro-batch of this run was planned: a run does not wait for its first one."""

    def holds(self, offsets: int, now: float, *, minimum: int) -> bool:
        """Whether to wait for more than these."""
        return offsets < minimum and now - self.since < self.max_delay

    def begun(self, now: float) -> "Patience":
        """Return the patience from now on, since a micro-batch was planned."""
        return replace(self, since=now)
