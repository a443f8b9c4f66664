"""ListTransactions: transactional ids that a filter matches, page by page."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice
from operator import attrgetter
from typing import TypeVar

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.wire.messages.request_bounds import PRODUCER_IDS_MAX
from semel_coordinator.transactions.machine import ListFilter, ListPosition, TransactionListing
from semel_coordinator.transactions.rpc.operators.id_patterns import IdPattern, pattern
from semel_coordinator.transactions.rpc.operators.state_numbers import FROM_WIRE, TO_WIRE
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import (
    INT64_MAX,
    require_count,
    require_int,
    require_known,
)
from semel_runtime.server.limits.list_turns import ListPauses, pause
from semel_runtime.server.pages import Page, PageTokens, names_after, position_behind

T = TypeVar("T")
_by_age = attrgetter("by_age")

_BY_ID = PageTokens("ListTransactions")
_BY_AGE = PageTokens("ListTransactions", "LIST_TRANSACTIONS_ORDER_OLDEST_FIRST")
_PIECE = 200
"""Transactional ids of which a list makes entries in one go, two milliseconds."""
_POSITIONS_PIECE = 500
"""Transactional ids that are looked up, or their ages, in one go, two milliseconds."""


@dataclass(frozen=True, slots=True)
class TransactionLister:
    """Answers ListTransactions."""

    parts: ServiceParts

    async def list_transactions(
        self, request: wire.ListTransactionsRequest, _call: Call
    ) -> wire.ListTransactionsResponse:
        """List a page of transactional ids, in pieces, so that other callers wait little."""
        self.parts.claim.check()
        wanted = _filter(request)
        ids = pattern("transactional_id_pattern", request.transactional_id_pattern)
        require_known("order", request.order, tuple(wire.ListTransactionsOrder.values()))
        list_work = _ListWork(self.parts, wanted, ids)
        if request.order == wire.LIST_TRANSACTIONS_ORDER_OLDEST_FIRST:
            filling = _Filling(request, _BY_AGE)
            begin = _BY_AGE.position(request.page_token, request.behind, ListPosition.parsed)
            await list_work.oldest_first(filling, begin)
        else:
            filling = _Filling(request, _BY_ID)
            await list_work.by_id(filling, _begin_by_id(request))
        return filling.response


class _Filling:
    """A page that is being filled."""

    def __init__(self, request: wire.ListTransactionsRequest, tokens: PageTokens) -> None:
        """Begin an empty page. Raises InvalidRequestError."""
        self.response = wire.ListTransactionsResponse()
        self._page, self._tokens = Page(request.limit), tokens
        self._key = tokens.key(request.page_token) or ""

    def takes(self, key: str, *listings: TransactionListing) -> bool:
        """Take entries that stand together, with the key of a page that ends with them.

        False: they belong on the next page, whose token the response has now.
        """
        entries = [_entry(listing) for listing in listings]
        if not self._page.takes(*entries):
            self.response.next_page_token = self._tokens.after(self._key)
            return False
        self.response.transactions.extend(entries)
        self._key = key
        return True


@dataclass(frozen=True, slots=True)
class _ListWork:
    """The work for one page."""

    parts: ServiceParts
    wanted: ListFilter
    ids: IdPattern | None
    """None: ids with any name are wanted."""

    async def by_id(self, filling: _Filling, begin: ListPosition | None) -> None:
        """Fill a page with the entries behind a position, by transactional id."""
        names, pauses = await self._names_from(begin), ListPauses()
        while piece := list(islice(names, _PIECE)):
            found = await self._list(piece)
            for name, of_id in groupby(found, key=lambda listing: listing.transactional_id):
                listings = [
                    each for each in of_id if begin is None or each.position.by_id > begin.by_id
                ]
                if listings and not filling.takes(name, *listings):
                    return
            await pauses.after_piece()

    async def oldest_first(self, filling: _Filling, begin: ListPosition | None) -> None:
        """Fill a page with the entries behind a position: transactions by age, then idle ids."""
        is_idle = begin is not None and not begin.start_ms
        if not is_idle and not await self._transactions(filling, begin):
            return
        if not self.wanted.has_idle:
            return
        names, pauses = await self._names_from(begin if is_idle else None), ListPauses()
        while piece := list(islice(names, _PIECE)):
            for listing in await self._list(piece):
                position = listing.position
                if position.start_ms or (begin is not None and position.by_age <= begin.by_age):
                    continue
                if not filling.takes(str(position), listing):
                    return
            await pauses.after_piece()

    async def _transactions(self, filling: _Filling, begin: ListPosition | None) -> bool:
        """Fill a page with transactions behind a position, the oldest first; False: it is full."""
        positions, pauses = await self._positions(begin), ListPauses()
        while piece := list(islice(positions, _PIECE)):
            names = dict.fromkeys(position.transactional_id for position in piece)
            found = {each.position: each for each in await self._list(list(names))}
            for position in piece:
                # None: it is unwanted, or has ended meanwhile, or is on the page already.
                listing = found.pop(position, None)
                if listing is not None and not filling.takes(str(position), listing):
                    return False
            await pauses.after_piece()
        return True

    async def _positions(self, begin: ListPosition | None) -> Iterator[ListPosition]:
        """Return the transactions behind a position, the oldest first."""
        queries, run = self.parts.machine.queries, self.parts.runner.run
        runs: list[list[ListPosition]] = []
        for piece in _pieces(await self._names(open_only=True), _POSITIONS_PIECE):
            found = await run(partial(queries.open_positions, piece))
            behind = (each for each in found if begin is None or each.by_age > begin.by_age)
            runs.append(sorted(behind, key=_by_age))
            await pause()
        return heapq.merge(*runs, key=_by_age)

    async def _names_from(self, begin: ListPosition | None) -> Iterator[str]:
        """Return the transactional ids from that of a position on, in order."""
        token = "" if begin is None else begin.transactional_id
        return await names_after(await self._names(), token, with_token=True)

    async def _names(self, *, open_only: bool = False) -> Sequence[str]:
        """Return the transactional ids that the list may name, each once, in any order."""
        queries, run = self.parts.machine.queries, self.parts.runner.run
        names, producer_ids = await run(
            lambda: queries.list_candidates(self.wanted, open_only=open_only)
        )
        if producer_ids:
            found = dict.fromkeys(names)
            for piece in _pieces(producer_ids, _POSITIONS_PIECE):
                found.update(dict.fromkeys(await run(partial(queries.names_of, piece))))
                await pause()
            names = list(found)
        return names if self.ids is None else await _matching(names, self.ids)

    async def _list(self, names: Sequence[str]) -> list[TransactionListing]:
        now_ms = self.parts.clock.now_ms()
        return await self.parts.runner.run(
            lambda: self.parts.machine.queries.list_transactions(names, self.wanted, now_ms=now_ms)
        )


async def _matching(names: Sequence[str], ids: IdPattern) -> Sequence[str]:
    """Return the names that match: a comparison takes a tenth of the time of an entry."""
    found, pauses = list[str](), ListPauses()
    for piece in _pieces(names, ids.names_at_once):
        found.extend(filter(ids.matches, piece))
        await pauses.after_piece()
    return found


def _pieces(things: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the things in parts that are looked at in one go."""
    return (things[start : start + size] for start in range(0, len(things), size))


def _begin_by_id(request: wire.ListTransactionsRequest) -> ListPosition | None:
    """Return the position behind which a page by id begins: that of the token, or the one given."""
    name = _BY_ID.key(request.page_token)
    if name is not None:
        return ListPosition(0, INT64_MAX, name)  # All entries of that id were on the page.
    return position_behind(request.behind, ListPosition.parsed)


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
        position=str(listing.position),
    )
