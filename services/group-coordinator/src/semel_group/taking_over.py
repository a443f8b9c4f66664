"""Takes over the partitions of groups that move here.

What a move is, is in ``machine/moves.py``. What an old leader hands over is stored piece by piece;
if anything fails before the last one, all of it is asked for again.
"""

from collections.abc import Sequence
from functools import partial

from semel.group.v1 import moves_pb2 as wire
from semel_common.errors import SemelError
from semel_common.ids import InternalTopic
from semel_common.wire.connection import Connection
from semel_common.wire.methods import HAND_OVER_GROUPS
from semel_group.machine import GroupMachine
from semel_group.machine.moves import Arrival, GroupsMove
from semel_group.machine.records import Record
from semel_group.serde import GroupSerde
from semel_runtime.cluster.image import ClusterImage, ServiceRole
from semel_runtime.machine import UnknownRecordError
from semel_runtime.participant.pieces import check_goes_on
from semel_runtime.participant.take_overs import TakeOvers
from semel_runtime.runner import Runner


class GroupsTaker:
    """Takes over the partitions of groups that move to one instance."""

    def __init__(
        self, runner: Runner[Record], machine: GroupMachine, take_overs: TakeOvers
    ) -> None:
        """Do nothing yet."""
        self._runner = runner
        self._machine = machine
        self._take_overs = take_overs
        self._serde = GroupSerde()

    async def run(self) -> None:
        """Take over what moves here, until cancelled."""
        await self._take_overs.run(self.take_all)

    def on_durable(self, records: Sequence[Record]) -> None:
        """Note that something may move here from now on."""
        if any(isinstance(record, ClusterImage) for record in records):
            self._take_overs.look()

    async def take_all(self) -> bool:
        """Try each move once; answers whether all came to their ends."""
        done = True
        for arrival in await self._runner.run(self._machine.arrivals):
            try:
                await self._take(arrival)
            except (SemelError, UnknownRecordError) as error:
                done = False
                self._take_overs.failed(
                    arrival.move,
                    "groups not taken over",
                    partition=arrival.move.partition,
                    leader=arrival.leader_id,
                    error=str(error),
                )
        return done

    async def _take(self, arrival: Arrival) -> None:
        move = arrival.move
        if not arrival.whole:
            leader = self._take_overs.connect(ServiceRole.GROUP_COORDINATOR, arrival.leader_id)
            await self._know(leader, move)
        await self._take_overs.complete(
            InternalTopic.CONSUMER_OFFSETS,
            move.partition,
            leader_epoch=move.leader_epoch,
            instance_id=move.moving_to,
        )
        self._take_overs.succeeded(
            move, "groups taken over", partition=move.partition, leader=arrival.leader_id
        )

    async def _know(self, leader: Connection, move: GroupsMove) -> None:
        first = piece = await self._hand_over(leader, move, 0)
        # They were handed over: from here on, a full disk must not keep them from being served.
        await self._runner.run(partial(self._machine.begin_take_over, move), privileged=True)
        known = 0
        while True:
            records = [self._serde.decode(each) for each in piece.records]
            known += len(records)
            whole = known >= first.record_count
            store = partial(self._machine.take_over, move, records, whole=whole)
            await self._runner.run(store, privileged=True)
            if whole:
                return
            piece = await self._hand_over(leader, move, known)
            check_goes_on(first, piece)

    async def _hand_over(
        self, leader: Connection, move: GroupsMove, first_record: int
    ) -> wire.HandOverGroupsResponse:
        request = wire.HandOverGroupsRequest(
            partition=move.partition,
            leader_epoch=move.leader_epoch,
            instance_id=move.moving_to,
            first_record=first_record,
        )
        timeout_ms = self._take_overs.request_timeout_ms
        return await leader.call(HAND_OVER_GROUPS, request, timeout_ms=timeout_ms)
