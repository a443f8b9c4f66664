"""A proxy before a real coordinator: it loses, aborts and fences, as clients may see in production.

It passes on every unary call as it is, with two exceptions: addresses (clients come back to the
proxy), and the commits that are to have trouble.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum

import grpc

from aiosemel import SemelClient
from semel.common.v1.participants_pb2 import Participants, TransactionResult
from semel.coordinator.v1.cluster_pb2 import FindCoordinatorResponse
from semel.coordinator.v1.outcomes_pb2 import (
    GetTransactionOutcomeRequest,
    GetTransactionOutcomeResponse,
)
from semel.coordinator.v1.transactions_pb2 import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    WaitFor,
)
from semel_common.wire.methods import (
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    FIND_COORDINATOR,
    GET_TRANSACTION_OUTCOME,
    INIT_PRODUCER_ID,
)
from semel_runtime.server.item_errors import METADATA_KEY

_CALL_TIMEOUT_S = 20.0


class Trouble(StrEnum):
    """The fates of a commit."""

    NONE = "none"
    LOST_REQUEST = "its request is lost"
    LOST_ANSWER = "it is decided, and its answer is lost"
    LATE_ANSWER = "it is decided, and not answered before the deadline"
    ABORTED = "an operator has aborted the transaction"
    BROKER_KILLED = "a broker is killed, and comes back"
    REFUSED = "a send of the next transaction is refused, because an operator has aborted it"
    FENCED = "another instance has taken over"


class Scripted:
    """Which trouble the next transactions have; a repeat of a commit has none."""

    def __init__(self, script: Sequence[Trouble]) -> None:
        self._script = list(script)
        self._seen: set[int] = set()
        self.done: list[Trouble] = []
        self.aborted: list[Participants] = []
        """The participants that each abort has named."""
        self.refused: list[Participants] = []
        """The participants that each abort should have named."""

    def next(self, request: EndTxnRequest) -> Trouble:
        """Return the fate of this commit."""
        commits = request.result == TransactionResult.TRANSACTION_RESULT_COMMIT
        if not commits:
            self.aborted.append(request.participants)
        if not commits or request.producer_epoch in self._seen or not self._script:
            return Trouble.NONE
        self._seen.add(request.producer_epoch)
        self.done.append(self._script.pop(0))
        return self.done[-1]


class TroubledCoordinator(grpc.GenericRpcHandler):
    """One coordinator behind a port of its own."""

    def __init__(
        self, target: str, script: Scripted, kill_broker: Callable[[], Awaitable[None]]
    ) -> None:
        self._script = script
        self._kill_broker = kill_broker
        self._target = target
        self._channel = grpc.aio.insecure_channel(target)
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers((self,))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self.moved: dict[int, int] = {}
        """Which port stands before which coordinator's."""

    async def start(self) -> None:
        """Take calls."""
        await self._server.start()

    async def stop(self) -> None:
        """Take none any more."""
        await self._server.stop(None)
        await self._channel.close()

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> "grpc.RpcMethodHandler[bytes, bytes]":
        """Take every unary call, whatever it is."""
        path = handler_call_details.method

        async def answer(
            request: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]"
        ) -> bytes:
            trouble = Trouble.NONE
            if path == END_TXN.path:
                trouble = self._script.next(EndTxnRequest.FromString(request))
            await self._before(trouble, request, context)
            response = await self._pass_on(path, request, context)
            if trouble is Trouble.REFUSED:
                await self._abort_next(EndTxnRequest.FromString(request))
            if trouble is Trouble.LOST_ANSWER:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the answer is lost")
            if trouble is Trouble.LATE_ANSWER:
                await asyncio.sleep(_CALL_TIMEOUT_S)
            return self._moved(response) if path == FIND_COORDINATOR.path else response

        return grpc.unary_unary_rpc_method_handler(answer)

    async def _before(
        self,
        trouble: Trouble,
        request: bytes,
        context: "grpc.aio.ServicerContext[bytes, bytes]",
    ) -> None:
        match trouble:
            case Trouble.LOST_REQUEST:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the request is lost")
            case Trouble.ABORTED:
                ends = EndTxnRequest.FromString(request)
                await self._abort(ends, ends.producer_epoch)
            case Trouble.FENCED:
                successor = InitProducerIdRequest(
                    transactional_id=EndTxnRequest.FromString(request).transactional_id,
                    instance_id="a successor", init_number=1, transaction_timeout_ms=30_000,
                    wait=WaitFor.WAIT_FOR_DECIDED,
                )  # fmt: skip
                await self._call(INIT_PRODUCER_ID.path, successor.SerializeToString())
            case Trouble.BROKER_KILLED:
                await self._kill_broker()
            case Trouble.NONE | Trouble.LOST_ANSWER | Trouble.LATE_ANSWER | Trouble.REFUSED:
                pass

    async def _abort_next(self, ended: EndTxnRequest) -> None:
        """Abort the next transaction at the last topic; it will have the same participants."""
        epoch = ended.producer_epoch + 1
        self._script.refused.append(ended.participants)
        register = AddPartitionsToTxnRequest(
            transactional_id=ended.transactional_id,
            producer_id=ended.producer_id,
            producer_epoch=epoch,
            topics=ended.participants.topics[-1:],
        )
        await self._call(ADD_PARTITIONS_TO_TXN.path, register.SerializeToString())
        await self._abort(ended, epoch)
        ask = GetTransactionOutcomeRequest(producer_id=ended.producer_id, producer_epoch=epoch)
        complete = False
        while not complete:
            told = await self._call(GET_TRANSACTION_OUTCOME.path, ask.SerializeToString())
            complete = GetTransactionOutcomeResponse.FromString(told).complete

    async def _abort(self, transaction: EndTxnRequest, producer_epoch: int) -> None:
        async with SemelClient(self._target) as client:
            await client.admin().operators.abort_transaction(
                transaction.transactional_id,
                transaction.producer_id,
                producer_epoch,
                operator="test-clients",
                reason="to see what the client does",
            )

    async def _pass_on(
        self, path: str, request: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]"
    ) -> bytes:
        try:
            asked = tuple(context.invocation_metadata() or ())
            return await self._call(
                path, request, [question for question in asked if question[0] == METADATA_KEY]
            )
        except grpc.aio.AioRpcError as error:
            context.set_trailing_metadata(tuple(error.trailing_metadata() or ()))
            await context.abort(error.code(), error.details() or "")
            raise

    async def _call(
        self, path: str, request: bytes, metadata: Sequence[tuple[str, str | bytes]] = ()
    ) -> bytes:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(path)
        return await call(request, timeout=_CALL_TIMEOUT_S, metadata=tuple(metadata))

    def _moved(self, response: bytes) -> bytes:
        answer = FindCoordinatorResponse.FromString(response)
        for found in answer.coordinators:
            found.instance.port = self.moved.get(found.instance.port, found.instance.port)
        return answer.SerializeToString()
