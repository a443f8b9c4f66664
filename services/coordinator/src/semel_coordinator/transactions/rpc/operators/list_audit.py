"""ListAudit: what operators did at this instance, page by page, the last one first."""

from dataclasses import dataclass
from typing import NamedTuple

from semel.coordinator.v1 import history_pb2 as wire
from semel_common.wire.messages.request_bounds import AUDIT_ACTIONS_MAX, NAME_LENGTH_MAX
from semel_coordinator.transactions.machine.history.audit_trail import AuditEntry, AuditFilter
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_runtime.machine import Result
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count, require_int, require_name
from semel_runtime.server.limits.list_turns import pause
from semel_runtime.server.pages import Page, PageTokens

_TOKENS = PageTokens("ListAudit")
_PIECE = 500
"""Entries that a list looks at in one go."""
_DIGITS = (15, 5, 15)
"""Of the fields of a position."""


class AuditPosition(NamedTuple):
    """Where an entry stands among those of all coordinators: the last one is highest."""

    time_ms: int
    instance_id: int
    number: int

    def __str__(self) -> str:
        """Return a text; the order of texts is that of positions."""
        return "-".join(f"{each:0{digits}d}" for each, digits in zip(self, _DIGITS, strict=True))

    @classmethod
    def parsed(cls, text: str) -> "AuditPosition | None":
        """Return the position of a text; None of a text that no position has."""
        fields = text.split("-")
        if len(fields) != len(_DIGITS):
            return None
        if not all(each.isascii() and each.isdigit() for each in fields):
            return None
        found = cls(*map(int, fields))
        return found if str(found) == text else None


@dataclass(frozen=True, slots=True)
class AuditLister:
    """Answers ListAudit."""

    parts: ServiceParts

    async def list_audit(
        self, request: wire.ListAuditRequest, _call: Call
    ) -> wire.ListAuditResponse:
        """List a page of entries, in pieces, so that other callers wait little."""
        parts, page = self.parts, Page(request.limit)
        wanted = _filter(request)
        behind = _TOKENS.position(request.page_token, request.behind, AuditPosition.parsed)
        instance_id = parts.machine.instance_id
        entries = await parts.runner.run(lambda: Result(parts.machine.audit.newest_first()))
        response, looked_at = wire.ListAuditResponse(), behind
        for count, entry in enumerate(entries, 1):
            position = AuditPosition(entry.time_ms, instance_id, entry.number)
            if (behind is None or position < behind) and wanted.wants(entry):
                found = _entry(position, entry)
                if not page.takes(found):
                    response.next_page_token = _TOKENS.after(str(looked_at))
                    return response
                response.entries.append(found)
                looked_at = position
            if not count % _PIECE:
                await pause()
        return response


def _filter(request: wire.ListAuditRequest) -> AuditFilter:
    """Read which entries the caller asks for."""
    require_count("actions", request.actions, maximum=AUDIT_ACTIONS_MAX)
    principal, address = request.principal, request.address
    return AuditFilter(
        actions=frozenset(
            require_name(f"actions[{index}]", action, length_max=NAME_LENGTH_MAX)
            for index, action in enumerate(request.actions)
        ),
        principal=require_name("principal", principal, length_max=NAME_LENGTH_MAX)
        if principal
        else "",
        address=require_name("address", address, length_max=NAME_LENGTH_MAX) if address else "",
        from_ms=require_int("from_time_ms", request.from_time_ms),
        before_ms=require_int("before_time_ms", request.before_time_ms) or None,
    )


def _entry(position: AuditPosition, entry: AuditEntry) -> wire.AuditEntry:
    return wire.AuditEntry(
        position=str(position),
        time_ms=entry.time_ms,
        action=entry.action,
        what=entry.what,
        principal=entry.principal,
        address=entry.address,
        operator=entry.operator,
        reason=entry.reason,
        end=entry.end,
    )
