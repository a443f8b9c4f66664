"""ListTransactions: transactional ids that a filter matches, page by page."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.wire.messages.request_bounds import PRODUCER_IDS_MAX
from semel_coordinator.transactions.machine import ListFilter, TransactionListing
from semel_coordinator.transactions.rpc.operators.id_patterns import pattern
from semel_coordinator.transactions.rpc.operators.state_numbers import FROM_WIRE, TO_WIRE
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count, require_int, require_known
from semel_runtime.server.pages import Page, PageTokens, names_after

_TOKENS = PageTokens("ListTransactions")
_PIECE = 1_000
"""Transactional ids that a list looks at in one go, a few milliseconds."""
_PIECE_WITH_PATTERN = 50
"""The same with a pattern, of which the worst takes 0.2 ms for each id."""


@dataclass(frozen=True, slots=True)
class TransactionLister:
    """Answers ListTransactions."""

    parts: ServiceParts

    async def list_transactions(
        self, request: wire.ListTransactionsRequest, _call: Call
    ) -> wire.ListTransactionsResponse:
        """List a page of transactional ids, in pieces, so that other callers wait little."""
        parts = self.parts
        parts.claim.check()
        wanted = _filter(request)
        page, looked_at = Page(request.limit), _TOKENS.key(request.page_token) or ""
        candidates = await parts.runner.run(lambda: parts.machine.queries.list_candidates(wanted))
        names = await names_after(candidates, looked_at)
        size = _PIECE if wanted.matches is None else _PIECE_WITH_PATTERN
        response = wire.ListTransactionsResponse()
        while piece := list(islice(names, size)):
            found = await self._list(piece, wanted)
            for name, listings in groupby(found, key=lambda listing: listing.transactional_id):
                entries = [_entry(listing) for listing in listings]
                if not page.takes(*entries):
                    response.next_page_token = _TOKENS.after(looked_at)
                    return response
                response.transactions.extend(entries)
                looked_at = name
            await asyncio.sleep(0)
        return response

    async def _list(self, names: Sequence[str], wanted: ListFilter) -> list[TransactionListing]:
        now_ms = self.parts.clock.now_ms()
        return await self.parts.runner.run(
            lambda: self.parts.machine.queries.list_transactions(names, wanted, now_ms=now_ms)
        )


def _filter(request: wire.ListTransactionsRequest) -> ListFilter:
    """Read which transactional ids the caller asks for."""
    require_count("states", request.states, maximum=len(FROM_WIRE))
    for index, state in enumerate(request.states):
        require_known(f"states[{index}]", state, tuple(FROM_WIRE))
    require_count("producer_ids", request.producer_ids, maximum=PRODUCER_IDS_MAX)
    running_longer_than_ms: int | None = None
    if request.HasField("running_longer_than_ms"):
        running_longer_than_ms = require_int(
            "running_longer_than_ms", request.running_longer_than_ms
        )
    return ListFilter(
        states=frozenset(FROM_WIRE[state] for state in request.states),
        producer_ids=frozenset(
            require_int(f"producer_ids[{index}]", producer_id, minimum=1)
            for index, producer_id in enumerate(request.producer_ids)
        ),
        running_longer_than_ms=running_longer_than_ms,
        matches=pattern("transactional_id_pattern", request.transactional_id_pattern),
    )


def _entry(listing: TransactionListing) -> wire.TransactionListing:
    return wire.TransactionListing(
        transactional_id=listing.transactional_id,
        producer_id=listing.producer_id,
        producer_epoch=listing.producer_epoch,
        state=TO_WIRE[listing.state],
        start_time_ms=listing.start_ms,
        incomplete_transactions=listing.incomplete_transactions,
        transaction_timeout_ms=listing.timeout_ms,
        last_update_time_ms=listing.last_update_ms,
        fenced_transactions=listing.fenced_transactions,
        joint_writers=listing.joint_writers,
    )
