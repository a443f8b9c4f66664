"""Answers ListOpenTransactions: what is open at a participant, and since when."""

from collections.abc import Callable
from functools import partial
from typing import Generic, Protocol, TypeVar

from semel.common.v1 import participants_pb2 as wire
from semel_common.wire.methods import LIST_OPEN_TRANSACTIONS
from semel_runtime.clock import Clock
from semel_runtime.machine import Result
from semel_runtime.participant.inquiry import OpenSince, P
from semel_runtime.participant.inquiry_loop import participant_to_wire
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.server.checks import require_int

R_co = TypeVar("R_co", covariant=True)
R_contra = TypeVar("R_contra", contravariant=True)
R = TypeVar("R")
T = TypeVar("T")

OPEN_TRANSACTIONS_MAX = 10_000
"""As many are listed at once."""


class OpenTransactions(Protocol[P, R_co]):
    """A service's machine, as far as transactions are open there."""

    def open_transactions(
        self, *, open_since_ms: int, limit: int
    ) -> Result[list[OpenSince[P]], R_co]:
        """Return those that have been open since a time or longer, the oldest first."""
        ...


class Runs(Protocol[R_contra]):
    """What is needed of the runner."""

    async def run(
        self, handler: Callable[[], Result[T, R_contra]], *, privileged: bool = False
    ) -> T:
        """Run one handler."""
        ...


class OpenTransactionLister(Generic[P, R]):
    """Lists what is open at one participant."""

    def __init__(self, runner: Runs[R], machine: OpenTransactions[P, R], clock: Clock) -> None:
        """Ask the machine."""
        self._runner = runner
        self._machine: OpenTransactions[P, R] = machine
        self._clock = clock

    def register(self, handlers: Handlers) -> None:
        """Add the handler."""
        handlers.add(LIST_OPEN_TRANSACTIONS, self.list_open_transactions)

    async def list_open_transactions(
        self, request: wire.ListOpenTransactionsRequest, _call: Call
    ) -> wire.ListOpenTransactionsResponse:
        """List them."""
        longer_than_ms = require_int("open_longer_than_ms", request.open_longer_than_ms)
        limit = require_int("limit", request.limit, maximum=OPEN_TRANSACTIONS_MAX)
        limit = limit or OPEN_TRANSACTIONS_MAX
        now_ms = self._clock.now_ms()
        found = await self._runner.run(
            partial(
                self._machine.open_transactions,
                open_since_ms=now_ms - longer_than_ms,
                limit=limit + 1,
            )
        )
        return wire.ListOpenTransactionsResponse(
            transactions=[_to_wire(each, now_ms) for each in found[:limit]],
            truncated=len(found) > limit,
        )


def _to_wire(found: OpenSince[P], now_ms: int) -> wire.OpenTransaction:
    return wire.OpenTransaction(
        participant=participant_to_wire(found.transaction.participant),
        producer_id=found.transaction.producer_id,
        producer_epoch=found.transaction.producer_epoch,
        start_time_ms=found.start_ms,
        age_ms=max(0, now_ms - found.start_ms),
        first_offset=found.first_offset,
    )
