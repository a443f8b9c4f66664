"""Producers of transactions that groups know, and forget once they are idle for long."""

from collections.abc import Sequence

from semel_common.ids import GroupId
from semel_group.machine.moves import GroupMoves
from semel_group.machine.offsets.offsets_machine import OffsetsMachine
from semel_group.machine.records import Record
from semel_runtime.machine import Result
from semel_runtime.participant.producer_expiry import IdleProducer


class IdleProducers:
    """Finds idle producers in the groups served here; see ``ProducerExpiry``."""

    def __init__(self, offsets: OffsetsMachine, moves: GroupMoves) -> None:
        """Look into the groups of these machines."""
        self._offsets = offsets
        self._moves = moves

    def participants(self) -> Result[Sequence[GroupId], Record]:
        """Return all groups, to look for idle producers in one after the other."""
        return Result([*map(GroupId, self._moves.served(self._offsets.known_group_ids()))])

    def producer_ids(self, participant: GroupId) -> Result[Sequence[int], Record]:
        """Return the producers that a group knows."""
        return Result(list(self._offsets.group(participant.group_id).producers))

    def idle_producers(
        self, participant: GroupId, producer_ids: Sequence[int], *, now_ms: int
    ) -> Result[list[IdleProducer[GroupId]], Record]:
        """Return the idle ones of the producers that a group knew."""
        return Result(self._offsets.idle_producers(participant, producer_ids, now_ms=now_ms))

    def forget_producers(
        self, idle: Sequence[IdleProducer[GroupId]], *, now_ms: int
    ) -> Result[int, Record]:
        """See ``OffsetsMachine.forget_producers``."""
        here = [
            producer for producer in idle if self._moves.is_served(producer.participant.group_id)
        ]
        return self._offsets.forget_producers(here, now_ms=now_ms)
