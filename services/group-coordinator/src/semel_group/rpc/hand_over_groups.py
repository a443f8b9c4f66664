"""HandOverGroups: the old leader of a partition of groups gives them to the new one."""

from semel.group.v1 import moves_pb2 as wire
from semel_common.ids import InternalTopic
from semel_group.journal import GroupSerde
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record
from semel_runtime.moving.old_leader import StateGiver
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call


class GroupsGiver:
    """Answers HandOverGroups."""

    def __init__(self, runner: Runner[Record], machine: GroupMachine, *, claim_epoch: int) -> None:
        """Give groups of one machine; ``claim_epoch`` is that of its journal."""
        self._giver = StateGiver(
            InternalTopic.CONSUMER_OFFSETS,
            runner,
            machine.moves,
            GroupSerde().encode,
            claim_epoch=claim_epoch,
        )

    async def hand_over_groups(
        self, request: wire.HandOverGroupsRequest, call: Call
    ) -> wire.HandOverGroupsResponse:
        """Stop serving a partition, and answer a piece of the state of its groups."""
        del call
        given = await self._giver.hand_over(request)
        return wire.HandOverGroupsResponse(
            records=given.records, record_count=given.record_count, claim_epoch=given.claim_epoch
        )
