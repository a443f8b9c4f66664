"""Fetches that wait: woken by the commit that gives them something to read, and by nothing else.

A waiting fetch costs a place in a table. Its wish is checked against the machine's state, which may
be ahead of the disk; that decides only when to wake it, never what it is answered.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from semel_broker.machine.records import BatchAppended, LogDropped, LogState, MarkerAppended, Record
from semel_broker.machine.values import IsolationLevel

ReadableBeyond: TypeAlias = Callable[[int, IsolationLevel, int], bool]
"""Whether a log, by its id, can be read past an offset; see ``ReadPlans.readable_beyond``."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    isolation: IsolationLevel
    offsets: Mapping[int, int]
    """Where each log is waited for, by its id."""
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Waiters:
    """All fetches that wait."""

    def __init__(self, readable_beyond: ReadableBeyond) -> None:
        self._readable_beyond = readable_beyond
        self._by_log: dict[int, dict[_Waiter, None]] = {}
        self._closed = False

    async def wait(
        self, offsets: Mapping[int, int], isolation: IsolationLevel, *, until: float
    ) -> bool:
        """Wait until one of the logs can be read past its offset, or changed hands.

        ``until`` is event-loop time. Answers False when it came, or when the broker stops.
        """
        if self._closed:
            return False
        waiter = _Waiter(isolation, offsets)
        if any(self._wants(waiter, log_id) for log_id in offsets):
            return True
        for log_id in offsets:
            self._by_log.setdefault(log_id, {})[waiter] = None
        try:
            async with asyncio.timeout_at(until):
                await waiter.woken.wait()
        except TimeoutError:
            return False
        finally:
            self._remove(waiter)
        return not self._closed

    def on_durable(self, records: Sequence[Record]) -> None:
        """Wake the readers that a commit concerns."""
        if not self._by_log:
            return
        moved: dict[int, None] = {}
        for record in records:
            match record:
                case BatchAppended() | MarkerAppended():
                    moved[record.log_id] = None
                case LogDropped() | LogState():
                    self._wake_all(record.log_id)
                case _:
                    pass
        for log_id in moved:
            for waiter in self._by_log.get(log_id, ()):
                if self._wants(waiter, log_id):
                    waiter.woken.set()

    def any_at(self, log_ids: Iterable[int]) -> bool:
        """Whether anybody waits at one of these logs."""
        return any(log_id in self._by_log for log_id in log_ids)

    def close(self) -> None:
        """Wake everybody: the broker stops."""
        self._closed = True
        for log_id in self._by_log:
            self._wake_all(log_id)

    def __len__(self) -> int:
        """Count the waiting calls, once for each log."""
        return sum(map(len, self._by_log.values()))

    def _wants(self, waiter: _Waiter, log_id: int) -> bool:
        return self._readable_beyond(log_id, waiter.isolation, waiter.offsets[log_id])

    def _wake_all(self, log_id: int) -> None:
        for waiter in self._by_log.get(log_id, ()):
            waiter.woken.set()

    def _remove(self, waiter: _Waiter) -> None:
        for log_id in waiter.offsets:
            del self._by_log[log_id][waiter]
            if not self._by_log[log_id]:
                del self._by_log[log_id]
