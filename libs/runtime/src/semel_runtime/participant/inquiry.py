"""Inquiries about open transactions: their time, and their answers. Pure.

See protocol.md, section 6: a transaction is asked about when it is open for a whole interval, and
soon after a newer epoch of its producer was seen.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from heapq import nsmallest
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

from semel_common.ids import GroupId, TopicPartition

P = TypeVar("P", TopicPartition, GroupId)


@dataclass(frozen=True, slots=True, kw_only=True)
class InquiryTimes:
    """When an open transaction is due."""

    interval_ms: int = 10_000
    """How long a transaction is open before its coordinator is asked about it."""
    superseded_delay_ms: int = 250
    """The same, from when a newer epoch of its producer was seen. A marker usually arrives in
    between: it travels at the same time as the first write of the next transaction."""

    def is_due(self, *, now_ms: int, start_ms: int, superseded_ms: int | None) -> bool:
        """Whether to ask; also if the clock went back, because then its age is not known.

        ``superseded_ms`` is when a newer epoch was seen, if one was.
        """
        if not 0 <= now_ms - start_ms < self.interval_ms:
            return True
        return superseded_ms is not None and not (
            0 <= now_ms - superseded_ms < self.superseded_delay_ms
        )


class OpenTransactionAt(NamedTuple, Generic[P]):
    """A transaction without an outcome, at one participant."""

    participant: P
    producer_id: int
    producer_epoch: int


class OpenSince(NamedTuple, Generic[P]):
    """The same, as operators are shown it."""

    start_ms: int
    transaction: OpenTransactionAt[P]
    first_offset: int = -1
    """Of a partition: of its first batch."""


class OpenCursor(NamedTuple):
    """The place of an open transaction in a list of them: the oldest first."""

    start_ms: int
    producer_id: int
    producer_epoch: int
    participant: str


def cursor_of(found: OpenSince[P]) -> OpenCursor:
    """Return the place of an open transaction in a list. It never changes."""
    transaction = found.transaction
    name = ":".join(map(str, transaction.participant))
    return OpenCursor(found.start_ms, transaction.producer_id, transaction.producer_epoch, name)


def oldest(
    found: Iterable[OpenSince[P]], *, open_since_ms: int, limit: int, after: OpenCursor | None
) -> list[OpenSince[P]]:
    """Return the oldest transactions that are open since a time or longer, behind a place."""
    behind = (
        each
        for each in found
        if each.start_ms <= open_since_ms
        if after is None or (each.start_ms >= after.start_ms and cursor_of(each) > after)
    )
    return nsmallest(limit, behind, key=cursor_of)


class InquiryOutcome(IntEnum):
    """Definite answers to an inquiry; the numbers of ``semel.coordinator.v1.InquiryOutcome``."""

    COMMITTED = 3
    ABORTED = 4
    NEVER_GIVEN = 5


class InquiryAnswer(Struct, Generic[P], frozen=True, kw_only=True):
    """What the coordinator knows of an open transaction. It does what the marker would do."""

    transaction: OpenTransactionAt[P]
    outcome: InquiryOutcome
    coordinator_epoch: int
    current_epoch: int = 0
    """With NEVER_GIVEN: what the producer is really at."""
