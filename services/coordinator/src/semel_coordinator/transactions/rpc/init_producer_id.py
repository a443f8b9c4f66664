"""InitProducerId: a producer gets its id and its epoch, and every older producer is fenced."""

from collections.abc import Iterable
from dataclasses import dataclass

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_coordinator.transactions.machine import (
    InitProducerId,
    PreparedTransaction,
    TransactionKey,
)
from semel_coordinator.transactions.rpc import request_fields
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_coordinator.transactions.rpc.wait_for_markers import wait_for_markers
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_int


@dataclass(frozen=True, slots=True)
class ProducerIdGiver:
    """Answers InitProducerId."""

    parts: ServiceParts

    async def init_producer_id(
        self, request: wire.InitProducerIdRequest, call: Call
    ) -> wire.InitProducerIdResponse:
        """Give a producer its id and epoch."""
        parts, machine = self.parts, self.parts.machine
        parts.claim.check()
        wait = request_fields.wait_for(request.wait)
        if not request.HasField("transactional_id"):
            return _response(await parts.runner.run(machine.give_producer_id))
        init = self._init(request, call)
        now_ms = parts.clock.now_ms()
        key = await parts.runner.run(lambda: machine.init_producer_id(init, now_ms=now_ms))
        if wait != wire.WAIT_FOR_DECIDED:
            await wait_for_markers(
                parts, lambda: machine.markers.is_complete_below(*key), key.producer_id, call, {}
            )
        expiration_ms = parts.limits.transactional_id_expiration_ms
        if not request.keep_prepared:
            return _response(key, expiration_ms=expiration_ms)
        prepared = await parts.runner.run(lambda: machine.prepared_before(key))
        return _response(key, prepared, expiration_ms=expiration_ms)

    def _init(self, request: wire.InitProducerIdRequest, call: Call) -> InitProducerId:
        limits = self.parts.limits
        return InitProducerId(
            transactional_id=request_fields.transactional_id(request.transactional_id, limits),
            instance_id=request_fields.instance_id(request.instance_id, limits),
            init_number=require_int("init_number", request.init_number, minimum=1),
            timeout_ms=request.transaction_timeout_ms,
            keep_prepared=request.keep_prepared,
            principal=str(call.origin.principal),
            address=call.origin.address,
        )


def _response(
    key: TransactionKey,
    prepared: Iterable[PreparedTransaction] = (),
    *,
    expiration_ms: int = 0,
) -> wire.InitProducerIdResponse:
    """Tell a producer its id, the transactions to complete, and when its id is forgotten."""
    return wire.InitProducerIdResponse(
        producer_id=key.producer_id,
        producer_epoch=key.producer_epoch,
        transactional_id_expiration_ms=expiration_ms,
        prepared=[
            wire.PreparedTransaction(
                producer_epoch=transaction.producer_epoch,
                start_time_ms=transaction.start_ms,
                prepared_time_ms=transaction.prepared_ms,
            )
            for transaction in prepared
        ],
    )
