"""Takes over the transaction-log partitions that move here, and follows what becomes of moves.

What a move is, is in ``machine/moves.py``. What an old leader hands over is stored piece by piece;
if anything fails before the last one, all of it is asked for again.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from semel.coordinator.journal.v1.transactions_pb2 import TransactionsRecord as JournalRecord
from semel.coordinator.v1 import moves_pb2 as wire
from semel_common.errors import SemelError
from semel_common.ids import InternalTopic
from semel_common.wire.connection import Connection
from semel_common.wire.methods import HAND_OVER_TRANSACTIONS
from semel_coordinator.controller.records import InternalPartitionRecord
from semel_coordinator.transactions import serde
from semel_coordinator.transactions.machine import (
    Arrival,
    TransactionLogMove,
    TransactionsMachine,
)
from semel_coordinator.transactions.runs import Runs
from semel_runtime.cluster.image import ClusterImage, ServiceRole
from semel_runtime.machine import UnknownRecordError
from semel_runtime.participant.pieces import check_goes_on
from semel_runtime.participant.take_overs import TakeOvers


class TransactionsTaker:
    """Takes over the transaction-log partitions that move to one instance."""

    def __init__(self, runner: Runs, machine: TransactionsMachine, take_overs: TakeOvers) -> None:
        """Do nothing yet."""
        self._runner = runner
        self._moves = machine.moves
        self._take_overs = take_overs
        self._changed = asyncio.Event()
        self._changed.set()

    async def run(self) -> None:
        """Take over what moves here, until cancelled. To be run after `claim`."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(), name="moves that ended")
            group.create_task(self._take_overs.run(self.take_all), name="take-overs")

    def on_durable(self, records: Sequence[object]) -> None:
        """Note that something may move here from now on, or has come to its end.

        The controller shows what it has decided in no record of its own, but before this is called.
        """
        if any(isinstance(each, (ClusterImage, InternalPartitionRecord)) for each in records):
            self._changed.set()
            self._take_overs.look()

    async def take_all(self) -> bool:
        """Try each move once; answers whether all came to their ends."""
        done = True
        for arrival in await self._runner.run(self._moves.arrivals):
            try:
                await self._take(arrival)
            except (SemelError, UnknownRecordError) as error:
                done = False
                self._take_overs.failed(
                    arrival.move,
                    "transactions not taken over",
                    partition=arrival.move.partition,
                    leader=arrival.leader_id,
                    error=str(error),
                )
        return done

    async def _follow(self) -> None:
        """Serve what is led here, and forget what is not, as soon as the metadata say so.

        Not with the metadata in one step: those of the controller are decided elsewhere. Meanwhile
        nobody serves what has moved.
        """
        while True:
            await self._changed.wait()
            self._changed.clear()
            # A full disk must not keep transactions from being served.
            await self._runner.run(self._moves.follow, privileged=True)

    async def _take(self, arrival: Arrival) -> None:
        move = arrival.move
        if not arrival.whole:
            leader = self._take_overs.connect(ServiceRole.COORDINATOR, arrival.leader_id)
            await self._know(leader, move)
        await self._take_overs.complete(
            InternalTopic.TRANSACTION_STATE,
            move.partition,
            leader_epoch=move.leader_epoch,
            instance_id=move.moving_to,
        )
        self._take_overs.succeeded(
            move, "transactions taken over", partition=move.partition, leader=arrival.leader_id
        )

    async def _know(self, leader: Connection, move: TransactionLogMove) -> None:
        first = piece = await self._hand_over(leader, move, 0)
        # They were handed over: from here on, a full disk must not keep them from being served.
        await self._runner.run(partial(self._moves.begin_take_over, move), privileged=True)
        known = 0
        while True:
            records = [serde.read(JournalRecord.FromString(each)) for each in piece.records]
            known += len(records)
            whole = known >= first.record_count
            store = partial(self._moves.take_over, move, records, whole=whole)
            await self._runner.run(store, privileged=True)
            if whole:
                return
            piece = await self._hand_over(leader, move, known)
            check_goes_on(first, piece)

    async def _hand_over(
        self, leader: Connection, move: TransactionLogMove, first_record: int
    ) -> wire.HandOverTransactionsResponse:
        request = wire.HandOverTransactionsRequest(
            partition=move.partition,
            leader_epoch=move.leader_epoch,
            instance_id=move.moving_to,
            first_record=first_record,
        )
        timeout_ms = self._take_overs.request_timeout_ms
        return await leader.call(HAND_OVER_TRANSACTIONS, request, timeout_ms=timeout_ms)
