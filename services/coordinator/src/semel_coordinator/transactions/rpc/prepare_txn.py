"""Answers PrepareTxn and CompletePreparedTxn: checks their form, runs the machine, waits."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import structlog

from semel.common.v1 import participants_pb2
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.wire.methods import COMPLETE_PREPARED_TXN, PREPARE_TXN
from semel_coordinator.transactions.machine import (
    Outcome,
    TransactionLimits,
    TransactionsMachine,
)
from semel_coordinator.transactions.rpc import requests, responses
from semel_coordinator.transactions.rpc.participant_names import TopicNames, has_names
from semel_coordinator.transactions.rpc.runner_access import Runs
from semel_runtime.clock import Clock
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.server.form_checks import require_int

log = structlog.get_logger(__name__)


class WaitComplete(Protocol):
    """Waits until markers are written, as long as the caller does."""

    def __call__(
        self,
        is_complete: Callable[[], bool],
        producer_id: int,
        call: Call,
        facts: Mapping[str, str | int],
    ) -> Awaitable[None]:
        """Raise RequestTimedOutError with the facts past the caller's time."""
        ...


class PreparedService:
    """The handlers of prepared transactions; a part of TransactionsService."""

    def __init__(
        self,
        *,
        runner: Runs,
        machine: TransactionsMachine,
        names: TopicNames,
        clock: Clock,
        limits: TransactionLimits,
        check_claimed: Callable[[], None],
        wait_complete: WaitComplete,
    ) -> None:
        """Answer by the machine, once `check_claimed` raises nothing."""
        self._runner = runner
        self._machine = machine
        self._names = names
        self._clock = clock
        self._limits = limits
        self._check_claimed = check_claimed
        self._wait_complete = wait_complete

    def register(self, handlers: Handlers) -> None:
        """Add a handler for each RPC."""
        handlers.add(PREPARE_TXN, self.prepare_txn)
        handlers.add(COMPLETE_PREPARED_TXN, self.complete_prepared_txn)

    async def prepare_txn(
        self, request: wire.PrepareTxnRequest, call: Call
    ) -> wire.PrepareTxnResponse:
        """Promise that a transaction can be committed."""
        self._check_claimed()
        transactional_id = requests.transactional_id(request.transactional_id, self._limits)
        key = requests.key(request.producer_id, request.producer_epoch)
        if has_names(request.participants.topics):
            await self._names.give_ids([request.participants.topics], call)
        participants = requests.participants(request, self._limits, commit=True)
        now_ms = self._clock.now_ms()
        next_key = await self._runner.run(
            lambda: self._machine.prepare_txn(
                transactional_id,
                key,
                participants=participants,
                traceparent=requests.traceparent(call),
                now_ms=now_ms,
            )
        )
        return responses.prepare_txn(next_key)

    async def complete_prepared_txn(
        self, request: wire.CompletePreparedTxnRequest, call: Call
    ) -> wire.CompletePreparedTxnResponse:
        """Decide a prepared transaction."""
        self._check_claimed()
        transactional_id = requests.transactional_id(request.transactional_id, self._limits)
        key = requests.key(request.producer_id, request.prepared_epoch, "prepared_epoch")
        producer_epoch: int | None = None
        if request.HasField("producer_epoch"):
            producer_epoch = require_int("producer_epoch", request.producer_epoch)
        wait = requests.wait_for(request.wait)
        commit = requests.result(request.result) == participants_pb2.TRANSACTION_RESULT_COMMIT
        outcome = Outcome.COMMITTED if commit else Outcome.ABORTED
        now_ms = self._clock.now_ms()
        await self._runner.run(
            lambda: self._machine.complete_prepared_txn(
                transactional_id,
                key,
                commit=commit,
                producer_epoch=producer_epoch,
                traceparent=requests.traceparent(call),
                now_ms=now_ms,
            )
        )
        log.info(
            "prepared transaction completed",
            transactional_id=transactional_id,
            producer_id=key.producer_id,
            producer_epoch=key.producer_epoch,
            outcome=outcome.value,
            by_producer=producer_epoch is not None,
        )
        if wait == wire.WAIT_FOR_COMPLETE:
            facts = {"outcome": outcome.value}
            await self._wait_complete(
                lambda: self._machine.is_complete(key), key.producer_id, call, facts
            )
        return wire.CompletePreparedTxnResponse()
