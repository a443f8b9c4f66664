"""HandOverTransactions: transaction-log partitions leave the old leader."""

from semel.coordinator.journal.v1.transactions_pb2 import TransactionsRecord as JournalRecord
from semel.coordinator.v1 import moves_pb2 as wire
from semel_common.ids import InternalTopic
from semel_coordinator.transactions.journal import transaction_serde
from semel_coordinator.transactions.machine import TransactionsMachine, TransactionsRecord
from semel_coordinator.transactions.rpc.runner_access import Runs
from semel_runtime.moving.old_leader import StateGiver
from semel_runtime.server.calls import Call


class TransactionsGiver:
    """Answers what is asked of transaction-log partitions that move away."""

    def __init__(self, runner: Runs, machine: TransactionsMachine, *, claim_epoch: int) -> None:
        """Give transactions of one machine; ``claim_epoch`` is that of its journal."""
        self._giver = StateGiver(
            InternalTopic.TRANSACTION_STATE,
            runner,
            machine.moves,
            _encode,
            claim_epoch=claim_epoch,
        )

    async def hand_over_transactions(
        self, request: wire.HandOverTransactionsRequest, _call: Call
    ) -> wire.HandOverTransactionsResponse:
        """Stop serving a partition, and answer a piece of the state of its transactions."""
        given = await self._giver.hand_over(request)
        return wire.HandOverTransactionsResponse(
            records=given.records, record_count=given.record_count, claim_epoch=given.claim_epoch
        )


def _encode(record: TransactionsRecord) -> bytes:
    message = JournalRecord()
    transaction_serde.write(record, message)
    return message.SerializeToString()
