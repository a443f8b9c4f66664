"""Takes over the states that move here, piece by piece.

If anything fails before the last piece, all of it is asked for again.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, TypeAlias, TypeVar

from semel_common.ids import InternalTopic
from semel_common.wire.connection import Connection
from semel_runtime.cluster.metadata_image import ServiceRole
from semel_runtime.moving.move_state import Arrival, MovingState, PartitionMove
from semel_runtime.moving.old_leader import Decides
from semel_runtime.moving.take_over_loop import TakeOvers
from semel_runtime.moving.transfer_pieces import Piece, check_goes_on

R = TypeVar("R")


Ask: TypeAlias = Callable[[Connection, PartitionMove, int, int], Awaitable[Piece]]
"""Asks an old leader for a state from one record on, and waits so many milliseconds."""


class StateTaker(Generic[R]):
    """Takes over the partitions of one internal topic that move to one instance."""

    def __init__(
        self,
        topic: InternalTopic,
        role: ServiceRole,
        runner: Decides[R],
        state: MovingState[R],
        take_overs: TakeOvers,
        *,
        ask: Ask,
        decode: Callable[[bytes], R],
    ) -> None:
        """Do nothing yet. Instances of ``role`` lead the topic's partitions."""
        self._topic = topic
        self._role = role
        self._runner = runner
        self._state = state
        self._take_overs = take_overs
        self._ask = ask
        self._decode = decode

    async def run(self) -> None:
        """Take over what moves here, until cancelled."""
        await self._take_overs.run(self.take_all)

    def look(self) -> None:
        """Note that something may move here from now on."""
        self._take_overs.look()

    async def take_all(self) -> bool:
        """Try each move once; answers whether all came to their ends."""
        done = [
            await self._take_overs.attempt(
                arrival.move,
                partial(self._take, arrival),
                topic=str(self._topic),
                partition=arrival.move.partition,
                leader=arrival.leader_id,
            )
            for arrival in await self._runner.run(self._state.arrivals)
        ]
        return all(done)

    async def _take(self, arrival: Arrival) -> None:
        move = arrival.move
        if not arrival.whole:
            await self._know(self._take_overs.connect(self._role, arrival.leader_id), move)
        await self._take_overs.complete(
            self._topic,
            move.partition,
            leader_epoch=move.leader_epoch,
            instance_id=move.moving_to,
        )

    async def _know(self, leader: Connection, move: PartitionMove) -> None:
        timeout_ms = self._take_overs.request_timeout_ms
        first = piece = await self._ask(leader, move, 0, timeout_ms)
        # It was handed over: from here on, a full disk must not keep it from being served.
        await self._runner.run(partial(self._state.begin_take_over, move), privileged=True)
        known = 0
        while True:
            records = [self._decode(record) for record in piece.records]
            known += len(records)
            whole = known >= first.record_count
            now_ms = self._take_overs.now_ms()
            store = partial(self._state.take_over, move, records, whole=whole, now_ms=now_ms)
            await self._runner.run(store, privileged=True)
            if whole:
                return
            piece = await self._ask(leader, move, known, timeout_ms)
            check_goes_on(first, piece)
