"""ListOpenTransactions: the open transactions of a participant, with their start times."""

from collections.abc import Callable
from functools import partial
from typing import Generic, Protocol, TypeVar

from semel.common.v1 import participants_pb2 as wire
from semel_common.wire.methods import LIST_OPEN_TRANSACTIONS
from semel_runtime.clock import Clock
from semel_runtime.machine import Result
from semel_runtime.participant.inquiry import OpenCursor, OpenSince, P, cursor_of
from semel_runtime.participant.inquiry_loop import participant_to_wire
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.server.form_checks import require_int
from semel_runtime.server.pages import Page, PageTokens

R_co = TypeVar("R_co", covariant=True)
R_contra = TypeVar("R_contra", contravariant=True)
R = TypeVar("R")
T = TypeVar("T")

_TOKENS = PageTokens("ListOpenTransactions")
_NUMBERS_IN_TOKEN = 3
"""Of a page token: start, producer id and epoch; the participant is behind them."""


class OpenTransactions(Protocol[P, R_co]):
    """A service's machine, as far as transactions are open there."""

    def open_transactions(
        self, *, open_since_ms: int, limit: int, after: OpenCursor | None = None
    ) -> Result[list[OpenSince[P]], R_co]:
        """Return transactions open since a time or longer, the oldest first, behind a place."""
        ...


class Runs(Protocol[R_contra]):
    """What is needed of the runner."""

    async def run(
        self, handler: Callable[[], Result[T, R_contra]], *, privileged: bool = False
    ) -> T:
        """Run one handler."""
        ...


class OpenTransactionLister(Generic[P, R]):
    """Lists the open transactions of one participant."""

    def __init__(self, runner: Runs[R], machine: OpenTransactions[P, R], clock: Clock) -> None:
        """Ask the machine."""
        self._runner = runner
        self._machine: OpenTransactions[P, R] = machine
        self._clock = clock

    def register(self, handlers: Handlers) -> None:
        """Add the handler."""
        handlers.add(LIST_OPEN_TRANSACTIONS, self.list_open_transactions, is_list=True)

    async def list_open_transactions(
        self, request: wire.ListOpenTransactionsRequest, _call: Call
    ) -> wire.ListOpenTransactionsResponse:
        """List a page of them."""
        longer_than_ms = require_int("open_longer_than_ms", request.open_longer_than_ms)
        page, after = Page(request.limit), _cursor(request.page_token)
        now_ms = self._clock.now_ms()
        found = await self._runner.run(
            partial(
                self._machine.open_transactions,
                open_since_ms=now_ms - longer_than_ms,
                limit=page.items_max + 1,
                after=after,
            )
        )
        response = wire.ListOpenTransactionsResponse()
        for index, each in enumerate(found):
            entry = _to_wire(each, now_ms)
            if not page.takes(entry):
                response.next_page_token = _token(cursor_of(found[index - 1]))
                response.truncated = True
                break
            response.transactions.append(entry)
        return response


def _token(cursor: OpenCursor) -> str:
    return _TOKENS.after(":".join(map(str, cursor)))


def _cursor(token: str) -> OpenCursor | None:
    """Return the place behind which a page begins. Raises InvalidRequestError."""
    key = _TOKENS.key(token)
    if key is None:
        return None
    *numbers, participant = key.split(":", maxsplit=_NUMBERS_IN_TOKEN)
    try:
        start_ms, producer_id, producer_epoch = map(int, numbers)
    except ValueError:
        raise _TOKENS.unknown(token) from None
    return OpenCursor(start_ms, producer_id, producer_epoch, participant)


def _to_wire(found: OpenSince[P], now_ms: int) -> wire.OpenTransaction:
    return wire.OpenTransaction(
        participant=participant_to_wire(found.transaction.participant),
        producer_id=found.transaction.producer_id,
        producer_epoch=found.transaction.producer_epoch,
        start_time_ms=found.start_ms,
        age_ms=max(0, now_ms - found.start_ms),
        first_offset=found.first_offset,
    )
