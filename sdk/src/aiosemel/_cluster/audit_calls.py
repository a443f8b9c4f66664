"""The audit of all coordinators as one list."""

from functools import partial
from heapq import nlargest

from aiosemel._cluster.everyone import ask_everyone
from aiosemel._cluster.metadata import COORDINATOR
from aiosemel._cluster.pages import pages
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster, Route
from aiosemel.errors import InvalidRequestError
from aiosemel.types.audit import AuditEntry, AuditLog
from semel.coordinator.v1 import history_pb2 as wire
from semel_common.wire import methods
from semel_common.wire.messages.plain_messages import PlainMessage

_ENTRY = PlainMessage(AuditEntry, wire.AuditEntry)
_PAGE_MAX = 10_000
"""The most entries that one answer may be asked for."""


async def list_audit(
    cluster: Cluster, request: wire.ListAuditRequest, limit: int, deadline: Deadline
) -> AuditLog:
    """Return the last ``limit`` entries that match; see ``Operators.list_audit``."""
    if limit < 1:
        raise InvalidRequestError(f"limit is {limit}: ask for one or more", field="limit")
    answers = await ask_everyone(
        cluster,
        COORDINATOR,
        lambda route: _listed(cluster, route, request, limit, deadline),
        deadline,
    )
    found = [entry for listed, _ in answers.given for entry in listed]
    chosen = nlargest(limit, found, key=lambda entry: entry.position)
    there_is_more = len(found) > len(chosen) or any(is_cut for _, is_cut in answers.given)
    return answers.whole(
        AuditLog(
            entries=tuple(map(_ENTRY.read, chosen)),
            behind=chosen[-1].position if there_is_more and chosen else None,
        )
    )


async def _listed(
    cluster: Cluster, route: Route, request: wire.ListAuditRequest, limit: int, deadline: Deadline
) -> tuple[list[wire.AuditEntry], bool]:
    """Return the last entries of one coordinator, and whether it has more."""

    async def ask(wanted: int, token: str) -> wire.ListAuditResponse:
        of_page = wire.ListAuditRequest(page_token=token, limit=wanted)
        of_page.MergeFrom(request)
        return await cluster.call(route, methods.LIST_AUDIT, of_page, deadline=deadline)

    found: list[wire.AuditEntry] = []
    async for page in pages(partial(ask, min(limit, _PAGE_MAX))):
        found += page.entries
        if len(found) >= limit:
            return found[:limit], len(found) > limit or bool(page.next_page_token)
    return found, False
