"""ListTransactionHistory: the transactions that have ended, the last one first.

A question takes the parts of the rings as they are, which do not change; so it can be answered in
pieces, with other calls between them, while the rings go on.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from semel_coordinator.transactions.machine.history.ended_transaction import (
    EndedParticipant,
    EndedTransaction,
    unpacked,
)
from semel_coordinator.transactions.machine.ownership import Ownership
from semel_coordinator.transactions.machine.state.limits import HistoryLimits
from semel_coordinator.transactions.machine.state.records import (
    EndedTransactionsKept,
    TransactionsRecord,
)
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import AbortReason, Outcome
from semel_runtime.machine import Result

_DIGITS = 15
"""Of a time or a number in a position: enough for 30,000 years."""
_PARTITION_DIGITS = 5
_FIELDS = 4


class HistoryPosition(NamedTuple):
    """Where an ended transaction stands among all of all coordinators: the last one is highest."""

    position_ms: int
    partition: int
    committed: bool
    number: int

    def __str__(self) -> str:
        """Return a text; the order of texts is that of positions."""
        return (
            f"{self.position_ms:0{_DIGITS}d}-{self.partition:0{_PARTITION_DIGITS}d}"
            f"-{self.committed:d}-{self.number:0{_DIGITS}d}"
        )

    @classmethod
    def parsed(cls, text: str) -> "HistoryPosition | None":
        """Return the position of a text; None of a text that no position has."""
        fields = text.split("-")
        if len(fields) != _FIELDS or not all(each.isascii() and each.isdigit() for each in fields):
            return None
        position_ms, partition, committed, number = map(int, fields)
        found = cls(position_ms, partition, bool(committed), number)
        return found if str(found) == text else None


class HistoryFilter(Struct, frozen=True, kw_only=True):
    """What a list is about. Everything that is given must fit."""

    outcome: Outcome | None = None
    reasons: frozenset[AbortReason] = frozenset()
    """Empty: all."""
    transactional_id: str = ""
    """Exactly this one; empty: all."""
    prefix: str = ""
    producer_id: int | None = None
    producer_epoch: int | None = None
    from_ms: int = 0
    """Completed then or later."""
    before_ms: int | None = None
    topic_id: str = ""
    partition: int | None = None
    """Of that topic."""
    group_id: str = ""

    def wants(self, ended: EndedTransaction) -> bool:
        """Whether a transaction fits; positions and outcomes are not looked at."""
        return (
            (not self.reasons or ended.reason in self.reasons)
            and self.transactional_id in ("", ended.transactional_id)
            and ended.transactional_id.startswith(self.prefix)
            and self.producer_id in (None, ended.producer_id)
            and self.producer_epoch in (None, ended.producer_epoch)
            and ended.completed_ms >= self.from_ms
            and (self.before_ms is None or ended.completed_ms < self.before_ms)
            and self._fits_topic(ended.participants)
            and self._fits_group(ended.participants)
        )

    def _fits_topic(self, participants: Iterable[EndedParticipant]) -> bool:
        return not self.topic_id or any(
            each.topic_id == self.topic_id and self.partition in (None, each.partition)
            for each in participants
            if not each.group_id
        )

    def _fits_group(self, participants: Iterable[EndedParticipant]) -> bool:
        return not self.group_id or any(each.group_id == self.group_id for each in participants)


class HistoryQueries:
    """A part of the transactions' machine, over its state."""

    def __init__(
        self, state: TransactionsState, ownership: Ownership, limits: HistoryLimits
    ) -> None:
        """Answer for the state as it is at each call."""
        self._state = state
        self._ownership = ownership
        self._limits = limits

    def rings(
        self, wanted: HistoryFilter
    ) -> Result[list[list[EndedTransactionsKept]], TransactionsRecord]:
        """Return the parts of the rings in which such transactions may be, for `listed`.

        Raises NotCoordinatorError for an id of another coordinator's.
        """
        committed = None if wanted.outcome is None else wanted.outcome is Outcome.COMMITTED
        partitions: Sequence[int] = self._ownership.partitions()
        if wanted.transactional_id:
            partitions = (self._ownership.partition_for(wanted.transactional_id),)
        return Result(self._state.history.rings_of(partitions, committed=committed))

    def oldest_ms(self, wanted: HistoryFilter, *, now_ms: int) -> int:
        """Return the oldest position that is still listed."""
        return max(wanted.from_ms, now_ms - self._limits.age_max_ms)


def listed(
    rings: Iterable[Sequence[EndedTransactionsKept]],
    wanted: HistoryFilter,
    *,
    behind: HistoryPosition | None,
    oldest_ms: int,
) -> Iterator[tuple[HistoryPosition, EndedTransaction | None]]:
    """Yield the entries behind a position, the last one first; None for an unwanted one.

    So the caller can pause between any two, however few of them are wanted.
    """
    newest_first = (_newest_first(ring, behind, oldest_ms) for ring in rings)
    merged = heapq.merge(*newest_first, key=lambda each: each[0], reverse=True)
    for position, ended in merged:
        yield position, ended if wanted.wants(ended) else None


def _newest_first(
    ring: Sequence[EndedTransactionsKept], behind: HistoryPosition | None, oldest_ms: int
) -> Iterator[tuple[HistoryPosition, EndedTransaction]]:
    for part in reversed(ring):
        if behind is not None and _position(part, 0) >= behind:
            continue
        for index in reversed(range(len(part.packed))):
            ended = unpacked(part.packed[index])
            if ended.position_ms < oldest_ms:
                return
            position = HistoryPosition(
                ended.position_ms, part.partition, part.committed, part.first_number + index
            )
            if behind is None or position < behind:
                yield position, ended


def _position(part: EndedTransactionsKept, index: int) -> HistoryPosition:
    ended = unpacked(part.packed[index])
    number = part.first_number + index
    return HistoryPosition(ended.position_ms, part.partition, part.committed, number)
