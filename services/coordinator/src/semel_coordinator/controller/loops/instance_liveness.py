"""The instances that have registered lately, and the state of their disks.

It lives in memory only: after a start, no instance has registered yet.
"""

from semel_coordinator.controller.machine import InstanceKey
from semel_runtime.journal.contract import DiskShortage


class Liveness:
    """When each instance registered last."""

    def __init__(self, *, live_for_ms: int) -> None:
        """Count an instance as live for this long after it has registered."""
        self._live_for_ms = live_for_ms
        self._registered_ms: dict[InstanceKey, int] = {}
        self._shortages: dict[InstanceKey, DiskShortage | None] = {}

    def note(self, key: InstanceKey, *, now_ms: int, shortage: DiskShortage | None = None) -> None:
        """Note that an instance has registered."""
        self._registered_ms[key] = now_ms
        self._shortages[key] = shortage

    def shortage_of(self, key: InstanceKey) -> DiskShortage | None:
        """Return how little space the disk of an instance had when it registered."""
        return self._shortages.get(key)

    def last_registered_ms(self, key: InstanceKey) -> int:
        """Return when an instance registered, in milliseconds since 1970-01-01 UTC; 0: not yet."""
        return self._registered_ms.get(key, 0)

    def is_live(self, key: InstanceKey, *, now_ms: int) -> bool:
        """Return whether an instance has registered lately."""
        registered_ms = self._registered_ms.get(key)
        return registered_ms is not None and 0 <= now_ms - registered_ms < self._live_for_ms
