"""What a transaction coordinator does with prepared transactions, in the simplest way."""

from collections.abc import Callable, Iterator, Mapping

from google.protobuf.message import Message
from producer_fakes import TransactionalId

from aiosemel.errors import InvalidTxnStateError, ProducerFencedError
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import transactions_pb2 as transactions


class FakePrepared:
    """The part of the fake coordinator that prepares and completes."""

    def __init__(self, transactional: Mapping[str, TransactionalId]) -> None:
        self._transactional = transactional
        self.waiting: dict[tuple[int, int], participants.Participants] = {}
        """Participants by producer id and epoch."""
        self.completed: dict[tuple[int, int], bool] = {}
        """Whether it was a commit."""

    def handlers(self) -> dict[str, Callable[..., Message]]:
        """Return what answers which request."""
        return {
            "PrepareTxn": self.prepare_txn,
            "CompletePreparedTxn": self.complete_prepared_txn,
        }

    def kept(
        self, state: TransactionalId, request: transactions.InitProducerIdRequest
    ) -> Iterator[transactions.PreparedTransaction]:
        """Say what a successor has to complete; abort it if it does not want to know."""
        for producer_id, epoch in sorted(self.waiting):
            if producer_id == state.producer_id and request.keep_prepared:
                yield transactions.PreparedTransaction(producer_epoch=epoch)
            elif producer_id == state.producer_id:
                del self.waiting[producer_id, epoch]
                self.completed[producer_id, epoch] = False

    def prepare_txn(
        self, request: transactions.PrepareTxnRequest
    ) -> transactions.PrepareTxnResponse:
        """Prepare the current transaction, or know it again."""
        state = self._transactional[request.transactional_id]
        key = (request.producer_id, request.producer_epoch)
        if request.producer_epoch == state.epoch:
            self.waiting[key] = request.participants
            state.outcomes[state.epoch] = ("ABORTED", "CLIENT")  # what EndTxn(abort) makes of it
            state.epoch += 1
        elif key not in self.waiting:
            state.check_repeat(request.producer_epoch, commit=True)
        return transactions.PrepareTxnResponse(
            producer_id=state.producer_id, producer_epoch=state.epoch
        )

    def complete_prepared_txn(
        self, request: transactions.CompletePreparedTxnRequest
    ) -> transactions.CompletePreparedTxnResponse:
        """Decide it, or know the decision again."""
        state = self._transactional[request.transactional_id]
        key = (request.producer_id, request.prepared_epoch)
        commit = request.result == participants.TRANSACTION_RESULT_COMMIT
        if request.HasField("producer_epoch") and request.producer_epoch != state.epoch:
            raise ProducerFencedError("a successor has taken over")
        if self.waiting.pop(key, None) is not None:
            self.completed[key] = commit
        if self.completed.get(key) is not commit:
            raise InvalidTxnStateError("ended otherwise")
        return transactions.CompletePreparedTxnResponse()
