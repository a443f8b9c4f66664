"""Invariants of the durable batches, checked after every change that compaction makes.

The check sees every rewrite at the moment when it is on disk, with the batches before and after. It
knows outcomes from the durable records of the journal, and asks neither the machine nor the rules
of compaction.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from semel.common.v1.records_pb2 import RecordBatch
from semel_broker.machine import BrokerMachine
from semel_broker.machine.log.gaps import is_allowed
from semel_broker.machine.log.partition_log import PartitionLog
from semel_broker.machine.records import LogCompacted
from semel_broker.storage.stored_batches import read_batch
from semel_common.record_batches.batches import decode_records
from semel_runtime.clock import Clock
from semel_runtime.journal.contract import StoredBatch

TABLE = "table"
"""The topic that is compacted, all the time."""
TABLE_PARTITIONS = 2
DELETE_RETENTION_MS = 2_000
TABLE_CONFIGS: Mapping[str, str | int] = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.1",
    "delete.retention.ms": DELETE_RETENTION_MS,
}
_TOLERANCE_MS = 1_500
"""A write takes time."""
_UNDER_WAY_S = 5.0
"""It takes no longer than that. A clock may be set meanwhile."""

Check = Callable[[bool, str], None]
Transaction = tuple[int, int]


class _Stored(NamedTuple):
    key: bytes | None
    value: bytes | None
    horizon_ms: int


class _Shown(NamedTuple):
    """The range of times that a clock may have shown."""

    earliest_ms: int
    latest_ms: int


class _View(NamedTuple):
    """The batches of one log, opened."""

    records: dict[int, _Stored]
    """Committed ones, by offset."""
    markers: dict[int, RecordBatch]
    with_batches: set[Transaction]
    """Transactions of which there is a batch."""


class CompactionWatch:
    """Watches the rewrites of one broker."""

    def __init__(
        self,
        ended: Mapping[tuple[object, Transaction], bool],
        stable: Mapping[int, int],
        clock: Clock,
    ) -> None:
        self._ended = ended
        self._stable = stable
        self._clock = clock
        self._set: list[tuple[float, int]] = []
        """When the clock was set, and by how much."""
        self._paused_s = float("-inf")
        """When the broker last began to stand still."""

    def clock_set(self, by_ms: int) -> None:
        """Be told that the clock was set forward or back."""
        self._set.append((asyncio.get_running_loop().time(), by_ms))

    def paused(self) -> None:
        """Be told that the broker stands still from now on, with a write under way perhaps."""
        self._paused_s = asyncio.get_running_loop().time()

    def rewritten(
        self,
        machine: BrokerMachine,
        log_id: int,
        before: Sequence[StoredBatch],
        after: Sequence[StoredBatch],
        check: Check,
    ) -> None:
        """Be told that a step of a pass is on disk."""
        for log in machine.logs():
            if log.log_id == log_id:
                _check_gaps(log, after, check)
        shown = self._shown()
        stable = self._stable.get(log_id, 0)
        check(
            [each for each in before if each.base_offset >= stable]
            == [each for each in after if each.base_offset >= stable],
            f"compaction of log {log_id} went past the last stable offset {stable}",
        )
        was = self._view(log_id, before, stable)
        left = self._view(log_id, after, stable)
        _check_records(log_id, was, left, shown.latest_ms, check)
        _check_markers(log_id, was, left, shown, check)

    def compacted(self, end: LogCompacted, batches: Iterable[StoredBatch], check: Check) -> None:
        """Be told that the end of a pass is on disk: the broker forgets the aborted batches."""
        aborted = [
            batch.base_offset
            for batch in batches
            if batch.base_offset < end.upto and self._is_aborted(end.log_id, read_batch(batch))
        ]
        check(not aborted, f"compaction of log {end.log_id} has kept what was aborted: {aborted}")

    def _shown(self) -> "_Shown":
        """Return the times that the clock may have shown when this write was decided."""
        now = asyncio.get_running_loop().time()
        since = now - _UNDER_WAY_S
        shown_ms = [self._clock.now_ms()]
        for at, by_ms in reversed(self._set):
            if at >= since:
                shown_ms.append(shown_ms[-1] - by_ms)
        if self._paused_s >= since:
            shown_ms.append(min(shown_ms) - int(1_000 * (now - self._paused_s)))
        return _Shown(min(shown_ms), max(shown_ms))

    def _is_aborted(self, log_id: int, batch: RecordBatch) -> bool:
        outcome = self._ended.get((log_id, _transaction(batch)))
        return batch.transactional and not batch.control and outcome is False

    def _view(self, log_id: int, batches: Iterable[StoredBatch], stable: int) -> _View:
        view = _View({}, {}, set())
        for stored in batches:
            if stored.base_offset >= stable:
                break
            batch = read_batch(stored)
            if batch.control:
                view.markers[stored.base_offset] = batch
                continue
            view.with_batches.add(_transaction(batch))
            if not self._is_aborted(log_id, batch):
                view.records.update(_records(batch))
        return view


def _check_gaps(log: PartitionLog, batches: Sequence[StoredBatch], check: Check) -> None:
    """Check that a log knows each gap between its batches, from its start on."""
    at = log.log_start_offset
    for batch in batches:
        known = at >= batch.base_offset or is_allowed(log.gaps, at, batch.base_offset)
        check(known, f"log {log.log_id} has a gap from {at} to {batch.base_offset}, unknown")
        at = max(at, batch.base_offset + batch.record_count)


def _transaction(batch: RecordBatch) -> Transaction:
    return batch.producer_id, batch.producer_epoch


def _records(batch: RecordBatch) -> Iterable[tuple[int, _Stored]]:
    columns = decode_records(batch)
    keys = columns.keys or [None] * len(columns.values)
    horizon_ms = batch.delete_horizon_ms
    for offset, key, value in zip(
        columns.offsets(batch.base_offset), keys, columns.values, strict=True
    ):
        yield offset, _Stored(key, value, horizon_ms)


def _check_records(log_id: int, was: _View, left: _View, now_ms: int, check: Check) -> None:
    newest = {record.key: offset for offset, record in sorted(left.records.items())}
    for offset, record in was.records.items():
        kept = left.records.get(offset)
        if kept is not None:
            same = (kept.key, kept.value) == (record.key, record.value)
            check(same, f"compaction of log {log_id} changed the record at {offset}")
        elif newest.get(record.key, -1) < offset:
            over = record.value is None and 0 < record.horizon_ms <= now_ms + _TOLERANCE_MS
            check(over, f"compaction of log {log_id} lost the newest record of its key at {offset}")
    check(left.records.keys() <= was.records.keys(), f"log {log_id} has got records")


def _check_markers(log_id: int, was: _View, left: _View, shown: _Shown, check: Check) -> None:
    for offset, marker in was.markers.items():
        kept = left.markers.get(offset)
        place = f"marker at {offset} of log {log_id}"
        if kept is None:
            horizon_ms = marker.delete_horizon_ms
            over = 0 < horizon_ms <= shown.latest_ms + _TOLERANCE_MS
            check(over, f"{place} is gone before its time {horizon_ms}")
        elif kept.delete_horizon_ms != marker.delete_horizon_ms:
            least_ms = shown.earliest_ms + DELETE_RETENTION_MS - _TOLERANCE_MS
            waits = kept.delete_horizon_ms > least_ms
            check(waits, f"{place} does not wait long enough")
        if kept is None or kept.delete_horizon_ms:
            alone = _transaction(marker) not in left.with_batches
            check(alone, f"{place} goes before the records of its transaction")
