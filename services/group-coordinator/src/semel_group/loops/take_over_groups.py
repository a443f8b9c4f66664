"""Takes over the partitions of groups that move here; the RPC is HandOverGroups."""

from collections.abc import Sequence

from semel.group.v1 import moves_pb2 as wire
from semel_common.ids import InternalTopic
from semel_common.wire.connection import Connection
from semel_common.wire.methods import HAND_OVER_GROUPS
from semel_group.journal import GroupSerde
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record
from semel_runtime.cluster.metadata_image import ClusterImage, ServiceRole
from semel_runtime.moving.move_state import PartitionMove
from semel_runtime.moving.new_leader import StateTaker
from semel_runtime.moving.take_over_loop import TakeOvers
from semel_runtime.runner import Runner


class GroupsTaker:
    """Takes over the partitions of groups that move to one instance."""

    def __init__(
        self, runner: Runner[Record], machine: GroupMachine, take_overs: TakeOvers
    ) -> None:
        """Do nothing yet."""
        self._taker = StateTaker(
            InternalTopic.CONSUMER_OFFSETS,
            ServiceRole.GROUP_COORDINATOR,
            runner,
            machine.moves,
            take_overs,
            ask=_ask,
            decode=GroupSerde().decode,
        )

    async def run(self) -> None:
        """Take over what moves here, until cancelled."""
        await self._taker.run()

    def on_durable(self, records: Sequence[Record]) -> None:
        """Note that something may move here from now on."""
        if any(isinstance(record, ClusterImage) for record in records):
            self._taker.look()


async def _ask(
    leader: Connection, move: PartitionMove, first_record: int, timeout_ms: int
) -> wire.HandOverGroupsResponse:
    request = wire.HandOverGroupsRequest(
        partition=move.partition,
        leader_epoch=move.leader_epoch,
        instance_id=move.moving_to,
        first_record=first_record,
    )
    return await leader.call(HAND_OVER_GROUPS, request, timeout_ms=timeout_ms)
