"""HandOverTransactions: what the old leader of a transaction-log partition gives to the new one."""

from functools import partial

import structlog

from semel.coordinator.journal.v1.transactions_pb2 import TransactionsRecord as JournalRecord
from semel.coordinator.v1 import moves_pb2 as wire
from semel_common.wire.methods import HAND_OVER_TRANSACTIONS
from semel_coordinator.transactions import serde
from semel_coordinator.transactions.machine import (
    TransactionLogMove,
    TransactionsMachine,
    TransactionsRecord,
)
from semel_coordinator.transactions.runs import Runs
from semel_runtime.participant.pieces import piece_of
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.server.checks import INT32_MAX, require_int

log = structlog.get_logger(__name__)


class TransactionsGiver:
    """Answers what is asked of transaction-log partitions that move away."""

    def __init__(self, runner: Runs, machine: TransactionsMachine, *, claim_epoch: int) -> None:
        """Give transactions of one machine; ``claim_epoch`` is that of its journal."""
        self._runner = runner
        self._moves = machine.moves
        self._claim_epoch = claim_epoch
        self._giving: tuple[TransactionLogMove, tuple[TransactionsRecord, ...]] | None = None
        """What is known of the transactions that are asked for piece by piece."""

    def register(self, handlers: Handlers) -> None:
        """Add the handler."""
        handlers.add(HAND_OVER_TRANSACTIONS, self.hand_over_transactions)

    async def hand_over_transactions(
        self, request: wire.HandOverTransactionsRequest, _call: Call
    ) -> wire.HandOverTransactionsResponse:
        """Serve a partition no more, and answer a piece of what is known of its transactions."""
        move = TransactionLogMove(
            partition=require_int("partition", request.partition, maximum=INT32_MAX),
            leader_epoch=require_int("leader_epoch", request.leader_epoch),
            moving_to=require_int("instance_id", request.instance_id, maximum=INT32_MAX),
        )
        first = require_int("first_record", request.first_record, maximum=INT32_MAX)
        # A full disk must not keep anybody from leaving.
        await self._runner.run(partial(self._moves.hand_over, move), privileged=True)
        known = self._known_of(move)
        piece = piece_of(known, first, _encode)
        if first + len(piece) >= len(known):
            self._giving = None
            log.info("transactions handed over", partition=move.partition, to=move.moving_to)
        return wire.HandOverTransactionsResponse(
            records=piece, record_count=len(known), claim_epoch=self._claim_epoch
        )

    def _known_of(self, move: TransactionLogMove) -> tuple[TransactionsRecord, ...]:
        """Return what was handed over: looked up once for all pieces, because it does not change.

        This is why it must be so that nothing else changes it: see ``Ownership.serves``.
        """
        if self._giving is None or self._giving[0] != move:
            self._giving = (move, self._moves.handed_over(move))
        return self._giving[1]


def _encode(record: TransactionsRecord) -> bytes:
    message = JournalRecord()
    serde.write(record, message)
    return message.SerializeToString()
