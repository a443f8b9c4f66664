"""The take-over of transaction-log partitions that move to this instance."""

import asyncio
from collections.abc import Sequence

from semel.coordinator.journal.v1.transactions_pb2 import TransactionsRecord as JournalRecord
from semel.coordinator.v1 import moves_pb2 as wire
from semel_common.ids import InternalTopic
from semel_common.wire.connection import Connection
from semel_common.wire.methods import HAND_OVER_TRANSACTIONS
from semel_coordinator.controller.machine.records import InternalPartitionRecord
from semel_coordinator.transactions.journal import transaction_serde
from semel_coordinator.transactions.machine import TransactionsMachine, TransactionsRecord
from semel_coordinator.transactions.rpc.runner_access import Runs
from semel_runtime.cluster.metadata_image import ClusterImage, ServiceRole
from semel_runtime.moving.move_state import PartitionMove
from semel_runtime.moving.new_leader import StateTaker
from semel_runtime.moving.take_over_loop import TakeOvers


class TransactionsTaker:
    """Takes over what moves to one instance, and follows what becomes of moves."""

    def __init__(self, runner: Runs, machine: TransactionsMachine, take_overs: TakeOvers) -> None:
        """Do nothing yet."""
        self._runner = runner
        self._moves = machine.moves
        self._changed = asyncio.Event()
        self._changed.set()
        self._taker = StateTaker(
            InternalTopic.TRANSACTION_STATE,
            ServiceRole.COORDINATOR,
            runner,
            machine.moves,
            take_overs,
            ask=_ask,
            decode=_decode,
        )

    async def run(self) -> None:
        """Take over what moves here, until cancelled. To be run after `claim`."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(), name="moves that ended")
            group.create_task(self._taker.run(), name="take-overs")

    def on_durable(self, records: Sequence[object]) -> None:
        """Note that something may move here from now on, or has come to its end.

        The controller shows what it has decided in no record of its own, but before this is called.
        """
        if any(isinstance(record, (ClusterImage, InternalPartitionRecord)) for record in records):
            self._changed.set()
            self._taker.look()

    async def _follow(self) -> None:
        """Serve the partitions led here, and forget the others, as soon as the metadata say so.

        This is not one step with the metadata, because the controller's are decided elsewhere.
        Meanwhile no instance serves a moved partition.
        """
        while True:
            await self._changed.wait()
            self._changed.clear()
            # A full disk must not keep transactions from being served.
            await self._runner.run(self._moves.follow, privileged=True)


async def _ask(
    leader: Connection, move: PartitionMove, first_record: int, timeout_ms: int
) -> wire.HandOverTransactionsResponse:
    request = wire.HandOverTransactionsRequest(
        partition=move.partition,
        leader_epoch=move.leader_epoch,
        instance_id=move.moving_to,
        first_record=first_record,
    )
    return await leader.call(HAND_OVER_TRANSACTIONS, request, timeout_ms=timeout_ms)


def _decode(data: bytes) -> TransactionsRecord:
    return transaction_serde.read(JournalRecord.FromString(data))
