"""What becomes of each batch in a pass. Pure.

Theory of operation. Batches come in the order of their offsets, from the start of the log to where
the key map ends. For each, the rules are:

* Aborted records go.
* A record stays if it is the newest of its key. A record without a key goes: it is the newest of no
  key.
* A tombstone that is the newest of its key stays until its horizon has passed: the time when a pass
  first removed all older records of the key, and ``delete.retention.ms`` more. A reader that began
  when an older record was still there has that long to get here and learn of the deletion.
* A marker stays as long as a record of its transaction does, and then until its horizon. Committed
  readers never need it. But a reader that reads uncommitted, and holds records back until it sees
  their marker, must find it if it could read the records.
* A batch that cannot be opened stays as it is. It may hold older records of any key, so no
  tombstone above it gets a horizon.

The horizon is kept in the header of the batch, so it outlives restarts; a batch gets it when
everything below was looked at in this pass, and so holds for all that is in it.
"""

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from semel_broker.compaction.content import NO_HORIZON, BatchContent, KeyedRecords
from semel_broker.compaction.keys import KeyMap


class Kept(Struct, frozen=True):
    """The batch stays as it is."""


class Removed(Struct, frozen=True):
    """Nothing of the batch is left."""


class Rewritten(Struct, frozen=True, kw_only=True):
    """The batch changes."""

    positions: Sequence[int] | None
    """Which of its records are left, ascending; None: all of them."""
    delete_horizon_ms: int


Fate: TypeAlias = Kept | Removed | Rewritten

_KEPT = Kept()
_REMOVED = Removed()


class Cleaning:
    """The second part of a pass: is shown one batch after the other, and decides."""

    def __init__(self, keys: KeyMap, *, delete_retention_ms: int) -> None:
        """``keys`` knows the newest records of the part that was not compacted before."""
        self._keys = keys
        self._delete_retention_ms = delete_retention_ms
        self._now_ms = 0
        self._with_records: set[tuple[int, int]] = set()
        """Transactions of which a record is left, and whose markers have not come yet."""
        self.unopened = 0
        """How many batches could not be opened."""
        self.records_left = 0
        """How many records and markers have stayed so far."""

    def decide(self, batch: BatchContent, *, now_ms: int) -> Fate:
        """Decide what becomes of the next batch; it is done before the one after it is shown."""
        self._now_ms = now_ms
        if batch.aborted:
            return _REMOVED
        if batch.control:
            return self._decide_marker(batch)
        if batch.records is None:
            self.unopened += 1
            self._leave(batch, 1)
            return _KEPT
        return self._decide_records(batch, batch.records)

    def _decide_marker(self, batch: BatchContent) -> Fate:
        needed = batch.transaction in self._with_records
        self._with_records.discard(batch.transaction)
        if not needed and self._is_past(batch.delete_horizon_ms):
            return _REMOVED
        self.records_left += 1
        if needed or batch.delete_horizon_ms:
            return _KEPT
        return Rewritten(positions=None, delete_horizon_ms=self._new_horizon_ms())

    def _decide_records(self, batch: BatchContent, records: KeyedRecords) -> Fate:
        positions = self._positions_left(batch, records)
        if not positions:
            return _REMOVED
        self._leave(batch, len(positions))
        horizon_ms = self._horizon_ms(
            batch, any(records.tombstones[position] for position in positions)
        )
        all_left = len(positions) == len(records.offsets)
        if all_left and horizon_ms == batch.delete_horizon_ms:
            return _KEPT
        return Rewritten(positions=None if all_left else positions, delete_horizon_ms=horizon_ms)

    def _positions_left(self, batch: BatchContent, records: KeyedRecords) -> Sequence[int]:
        has_newer = self._keys.has_newer
        newest = [
            position
            for position, (offset, key) in enumerate(
                zip(records.offsets, records.keys, strict=True)
            )
            if key is not None and not has_newer(key, offset)
        ]
        if not self._is_past(batch.delete_horizon_ms):
            return newest
        return [each for each in newest if not records.tombstones[each]]

    def _horizon_ms(self, batch: BatchContent, has_tombstones: bool) -> int:
        if not has_tombstones:
            return NO_HORIZON
        if batch.delete_horizon_ms or self.unopened:
            return batch.delete_horizon_ms
        return self._new_horizon_ms()

    def _new_horizon_ms(self) -> int:
        return self._now_ms + self._delete_retention_ms

    def _leave(self, batch: BatchContent, count: int) -> None:
        self.records_left += count
        if batch.transactional:
            self._with_records.add(batch.transaction)

    def _is_past(self, horizon_ms: int) -> bool:
        return horizon_ms != NO_HORIZON and horizon_ms <= self._now_ms
