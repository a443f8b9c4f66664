"""A state that moves: what its machine decides of it, and how both sides name it. Pure."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from semel_runtime.machine import Result

R = TypeVar("R")


class PartitionMove(Struct, frozen=True, kw_only=True):
    """A partition of groups, or of the transaction log, on its way."""

    partition: int
    leader_epoch: int
    """Of the instance that it leaves."""
    moving_to: int
    """The one that takes over."""


class Arrival(Struct, frozen=True, kw_only=True):
    """A partition that moves here."""

    move: PartitionMove
    leader_id: int
    """The instance that it leaves."""
    whole: bool
    """Whether all of it is here: only the controller does not know yet."""


class MovingState(Protocol[R]):
    """What a machine decides of partitions that move away, and that move here."""

    def hand_over(self, move: PartitionMove) -> Result[None, R]:
        """Serve a partition no more. Raises NotCoordinatorError."""
        ...

    def handed_over(self, move: PartitionMove) -> Sequence[R]:
        """Return the records of the handed-over partition: they do not change."""
        ...

    def arrivals(self) -> Result[list[Arrival], R]:
        """Return the partitions that move here."""
        ...

    def begin_take_over(self, move: PartitionMove) -> Result[None, R]:
        """Know nothing yet of what moves here. Raises FencedLeaderEpochError."""
        ...

    def take_over(
        self, move: PartitionMove, records: Sequence[R], *, whole: bool, now_ms: int
    ) -> Result[None, R]:
        """Take the next piece of the handed-over records; ``whole``: it is the last one.

        Idle times begin at ``now_ms``: the records have the times of another clock, and a wrong
        clock would let idle producers be forgotten at once.
        Raises FencedLeaderEpochError, and CorruptMessageError.
        """
        ...
