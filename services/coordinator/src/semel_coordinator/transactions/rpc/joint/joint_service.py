"""Answers JoinTxn, KeepAliveTxn and EndJointTxn; a part of the transactions' service."""

from collections.abc import Callable

from semel.common.v1 import participants_pb2
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.wire.methods import END_JOINT_TXN, JOIN_TXN, KEEP_ALIVE_TXN
from semel_coordinator.transactions.machine import (
    Outcome,
    TransactionLimits,
    TransactionsMachine,
)
from semel_coordinator.transactions.rpc.joint import joint_requests
from semel_coordinator.transactions.rpc.participant_names import TopicNames, has_names
from semel_coordinator.transactions.rpc.prepare_txn import WaitComplete
from semel_coordinator.transactions.rpc.requests import wait_for
from semel_coordinator.transactions.rpc.runner_access import Runs
from semel_runtime.clock import Clock
from semel_runtime.machine import Result
from semel_runtime.server.calls import Call, Handlers

_RESULTS = {
    Outcome.COMMITTED: participants_pb2.TRANSACTION_RESULT_COMMIT,
    Outcome.ABORTED: participants_pb2.TRANSACTION_RESULT_ABORT,
}


class JointService:
    """The handlers of joint transactions."""

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
        self._joint = machine.joint
        self._clock = clock
        self._limits = limits
        self._check_claimed = check_claimed
        self._wait_complete = wait_complete

    def register(self, handlers: Handlers) -> None:
        """Add a handler for each RPC."""
        handlers.add(JOIN_TXN, self.join_txn)
        handlers.add(KEEP_ALIVE_TXN, self.keep_alive_txn)
        handlers.add(END_JOINT_TXN, self.end_joint_txn)

    async def join_txn(self, request: wire.JoinTxnRequest, call: Call) -> wire.JoinTxnResponse:
        """Give a process its writer."""
        self._check_claimed()
        join = joint_requests.join(request, self._limits, str(call.origin.principal))
        now_ms = self._clock.now_ms()
        key = await self._runner.run(lambda: self._joint.join_txn(join, now_ms=now_ms))
        if key is None:
            return wire.JoinTxnResponse(already_committed=True)
        return wire.JoinTxnResponse(producer_id=key.producer_id, producer_epoch=key.producer_epoch)

    async def keep_alive_txn(
        self, request: wire.KeepAliveTxnRequest, _call: Call
    ) -> wire.KeepAliveTxnResponse:
        """Put a timeout off."""
        self._check_claimed()
        name = joint_requests.name(request.transaction, self._limits)
        now_ms = self._clock.now_ms()
        committed = await self._runner.run(lambda: self._joint.keep_alive_txn(name, now_ms=now_ms))
        return wire.KeepAliveTxnResponse(already_committed=committed)

    async def end_joint_txn(
        self, request: wire.EndJointTxnRequest, call: Call
    ) -> wire.EndJointTxnResponse:
        """Decide for all writers."""
        self._check_claimed()
        wait = wait_for(request.wait)
        named = [
            writer.participants.topics
            for writer in request.writers
            if has_names(writer.participants.topics)
        ]
        if named:
            is_abort = request.result == participants_pb2.TRANSACTION_RESULT_ABORT
            await self._names.give_ids(named, call, missing_ok=is_abort)
        end = joint_requests.end(request, self._limits, call)
        now_ms = self._clock.now_ms()
        ended = await self._runner.run(lambda: self._joint.end_joint_txn(end, now_ms=now_ms))
        if wait == wire.WAIT_FOR_COMPLETE:
            await self._wait_for_markers(end.name.transactional_id, ended.outcome, call)
        return wire.EndJointTxnResponse(
            result=_RESULTS[ended.outcome],
            already_committed=ended.already_committed,
            repeated_in_run=ended.repeated_in_run,
        )

    async def _wait_for_markers(self, transactional_id: str, outcome: Outcome, call: Call) -> None:
        """Wait until no writer of the id has a transaction without its markers."""
        facts = {"outcome": outcome.value}
        while True:
            producer_id = await self._runner.run(
                lambda: Result(self._joint.incomplete_writer(transactional_id))
            )
            if producer_id is None:
                return
            epoch = self._machine.current_epoch(producer_id)
            if epoch is None:
                continue  # It has moved away meanwhile: it is asked for once more, and refused.
            await self._wait_complete(
                lambda: self._machine.is_complete_below(producer_id, epoch),  # noqa: B023 - awaited here
                producer_id,
                call,
                facts,
            )
