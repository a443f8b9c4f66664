"""Writes how transactions ended, for WriteTxnMarkers and for the answers to inquiries."""

from collections.abc import Sequence
from functools import partial

from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import Record
from semel_broker.machine.values import Outcome
from semel_broker.rpc.fetch_waiters import Waiters
from semel_broker.storage.stored_batches import markers
from semel_common.errors import SemelError
from semel_runtime.clock import Clock
from semel_runtime.machine import Result
from semel_runtime.runner import Runner

_OUTCOMES_PER_DECISION = 512
"""As many markers go into one decision: a journal append holds a bounded number of batches."""


class OutcomeWriter:
    """Closes transactions in partitions of one machine."""

    def __init__(
        self, runner: Runner[Record], machine: BrokerMachine, waiters: Waiters, clock: Clock
    ) -> None:
        self._runner = runner
        self._machine = machine
        self._waiters = waiters
        self._clock = clock

    async def write(
        self, outcomes: Sequence[Outcome], *, patient: bool = False
    ) -> list[SemelError | None]:
        """Close transactions; answers why each outcome was refused, or None once it is durable.

        ``patient`` outcomes have time, unless a reader waits for them.
        """
        patient = patient and len(outcomes) <= _OUTCOMES_PER_DECISION
        now_ms = self._clock.now_ms()
        refusals: list[SemelError | None] = []
        for start in range(0, len(outcomes), _OUTCOMES_PER_DECISION):
            step = outcomes[start : start + _OUTCOMES_PER_DECISION]
            decide = partial(self._close, step, now_ms, patient=patient)
            refusals += await self._runner.run(decide, privileged=True)
        return refusals

    def _close(
        self, outcomes: Sequence[Outcome], now_ms: int, *, patient: bool
    ) -> Result[list[SemelError | None], Record]:
        decided = self._machine.transactions.write_txn_markers(outcomes, now_ms=now_ms)
        batches = list(markers(decided.records))
        patient = patient and not self._waiters.any_at(batch.partition for batch in batches)
        return Result(decided.response, decided.records, batches, patient=patient)
