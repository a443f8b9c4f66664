"""The rings of ended transactions: the last ones of each transaction-log partition. Pure.

Theory of operation. A ring is a queue of parts, each with some packed transactions in the order in
which they were completed; the last part grows until it is full. Surplus and old entries go
part by part from the other end, so nothing is moved or counted twice. A part is the record of a
snapshot as it is. Replay puts its transactions in one by one: a restored ring has the same parts,
and goes on as the one that was live.

No clock is asked: the age of a transaction is how long before the newest of its ring it was
completed. A question for the history leaves out the entries that are too old by then.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from semel_coordinator.transactions.machine.history.ended_transaction import packed, unpacked
from semel_coordinator.transactions.machine.state.entities import DecidedTransaction
from semel_coordinator.transactions.machine.state.limits import HistoryLimits
from semel_coordinator.transactions.machine.state.people import Client
from semel_coordinator.transactions.machine.state.records import (
    EndedTransactionsKept,
    TransactionCompleted,
)
from semel_coordinator.transactions.machine.state.transitions import TransactionState

_PART_ENTRIES_MAX = 256
_PART_BYTES_MAX = 64 * 1024
_PARTS_MIN = 8
"""Parts of a full ring, at the least: so little of it goes at once."""
_ENTRY_OVERHEAD_BYTES = 48
"""What one takes in memory besides its bytes."""


class _Part(NamedTuple):
    """A part that is full."""

    kept: EndedTransactionsKept
    size_bytes: int
    newest_ms: int


class _Ring:
    """The transactions of one partition that have ended in one way."""

    __slots__ = ("_limits", "_parts", "count", "newest_ms", "number", "open", "open_bytes", "size")

    def __init__(self, limits: HistoryLimits) -> None:
        """Begin with nothing."""
        self._limits = limits
        self._parts: deque[_Part] = deque()
        self.open: list[bytes] = []
        """The last part, which is not full."""
        self.open_bytes = 0
        self.number = 0
        """Of the next one."""
        self.count = 0
        self.size = 0
        """In bytes, of all parts."""
        self.newest_ms = 0

    def add(self, partition: int, data: bytes, position_ms: int, *, committed: bool) -> None:
        """Put one at the end, and let the oldest ones go that are too many or too old."""
        size_bytes = len(data) + _ENTRY_OVERHEAD_BYTES
        self.open.append(data)
        self.open_bytes += size_bytes
        self.number += 1
        self.count += 1
        self.size += size_bytes
        self.newest_ms = position_ms
        limits = self._limits
        if len(self.open) >= min(
            _PART_ENTRIES_MAX, max(1, limits.entries_max // _PARTS_MIN)
        ) or self.open_bytes >= min(_PART_BYTES_MAX, limits.bytes_max // _PARTS_MIN):
            kept = self.last(partition, committed=committed)
            self._parts.append(_Part(kept, self.open_bytes, position_ms))
            self.open, self.open_bytes = [], 0
        while self._parts and self._is_surplus(self._parts[0]):
            gone = self._parts.popleft()
            self.count -= len(gone.kept.packed)
            self.size -= gone.size_bytes

    def _is_surplus(self, oldest: _Part) -> bool:
        limits = self._limits
        return (
            self.count > limits.entries_max
            or self.size > limits.bytes_max
            or oldest.newest_ms < self.newest_ms - limits.age_max_ms
        )

    def last(self, partition: int, *, committed: bool) -> EndedTransactionsKept:
        """Return the part that is not full."""
        return EndedTransactionsKept(
            partition=partition,
            committed=committed,
            first_number=self.number - len(self.open),
            packed=tuple(self.open),
        )

    def parts(self, partition: int, *, committed: bool) -> Iterator[EndedTransactionsKept]:
        """Yield all parts, the oldest first."""
        for part in self._parts:
            yield part.kept
        if self.open:
            yield self.last(partition, committed=committed)


class EndedTransactions:
    """All rings of one instance."""

    def __init__(self, limits: HistoryLimits) -> None:
        """Begin with nothing."""
        self._limits = limits
        self._rings: dict[tuple[int, bool], _Ring] = {}

    @property
    def count(self) -> int:
        """How many transactions are kept."""
        return sum(ring.count for ring in self._rings.values())

    @property
    def size_bytes(self) -> int:
        """About how much memory they take."""
        return sum(ring.size for ring in self._rings.values())

    def add(
        self,
        partition: int,
        decided: DecidedTransaction,
        completed: TransactionCompleted,
        *,
        transactional_id: str,
        client: Client | None,
    ) -> None:
        """Keep a transaction that is completed now."""
        if not self._limits.entries_max:
            return
        committed = completed.state is TransactionState.COMPLETE_COMMIT
        ring = self._ring(partition, committed=committed)
        position_ms = max(ring.newest_ms, completed.completed_ms)
        data = packed(
            decided,
            completed,
            transactional_id=transactional_id,
            client=client,
            position_ms=position_ms,
        )
        ring.add(partition, data, position_ms, committed=committed)

    def load(self, kept: EndedTransactionsKept) -> None:
        """Take a part from a snapshot; the parts of a ring come in their order."""
        if not self._limits.entries_max:
            return
        ring = self._ring(kept.partition, committed=kept.committed)
        if not ring.count:
            ring.number = kept.first_number
        for data in kept.packed:
            position_ms = unpacked(data).position_ms
            ring.add(kept.partition, data, position_ms, committed=kept.committed)

    def forget(self, partition: int) -> None:
        """Keep nothing of a partition."""
        for committed in (True, False):
            self._rings.pop((partition, committed), None)

    def parts(self) -> list[EndedTransactionsKept]:
        """Return all parts of all rings; those of each ring from the oldest to the newest."""
        return [
            part
            for (partition, committed), ring in self._rings.items()
            for part in ring.parts(partition, committed=committed)
        ]

    def rings_of(
        self, partitions: Iterable[int], *, committed: bool | None
    ) -> list[list[EndedTransactionsKept]]:
        """Return the parts of each ring of some partitions; None: of both outcomes."""
        outcomes = (True, False) if committed is None else (committed,)
        return [
            list(ring.parts(partition, committed=outcome))
            for partition in partitions
            for outcome in outcomes
            if (ring := self._rings.get((partition, outcome))) is not None
        ]

    def _ring(self, partition: int, *, committed: bool) -> _Ring:
        ring = self._rings.get((partition, committed))
        if ring is None:
            ring = self._rings[partition, committed] = _Ring(self._limits)
        return ring
