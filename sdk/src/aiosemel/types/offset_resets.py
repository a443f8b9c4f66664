"""The targets of a reset of a group's offsets, and the changes that a reset makes."""

from dataclasses import dataclass
from typing import TypeAlias

from aiosemel.types.offsets import OffsetSpec, TopicPartition


@dataclass(frozen=True, slots=True)
class ToOffset:
    """The same offset in every partition."""

    offset: int


@dataclass(frozen=True, slots=True)
class ToTimestamp:
    """The first record at a time or later; without such a record, the latest offset."""

    timestamp_ms: int
    """Milliseconds since 1970-01-01 UTC."""


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """So many offsets on from the committed one, or back if it is negative."""

    offsets: int


ResetTo: TypeAlias = OffsetSpec | ToOffset | ToTimestamp | ShiftBy


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetChange:
    """The effect of a reset on one partition."""

    partition: TopicPartition
    before: int | None
    """None: the group has committed nothing there."""
    after: int
