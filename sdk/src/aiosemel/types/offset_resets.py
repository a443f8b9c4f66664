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
    """The first record at a time or later; the latest offset where there is none."""

    timestamp_ms: int
    """Milliseconds since 1970-01-01 UTC."""


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """So many offsets on from the committed one, or back if it is negative."""

    offsets: int


ResetTo: TypeAlias = OffsetSpec | ToOffset | ToTimestamp | ShiftBy


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetChange:
    """What a reset does to one partition."""

    partition: TopicPartition
    before: int | None
    """None: the group has committed nothing there."""
    after: int
