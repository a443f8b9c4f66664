"""The list of what operators did, as coordinators keep it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One request that was to change something."""

    time_ms: int
    """When it was taken up, in milliseconds since 1970-01-01 UTC."""
    action: str
    """The name of its RPC, such as ``AbortTransaction``."""
    what: str
    """The request as text, its first 1,000 characters."""
    principal: str
    """The caller, as the cluster knows it, such as ``User:ada``."""
    address: str
    """From where; empty: not known."""
    operator: str
    """Who asked, in their own words, as ``reason`` is; empty: the request has no such field."""
    reason: str
    end: str
    """DONE, or the code of the error; empty: not known, because a crash has cut it off, or it is
    still at work. A request of many items is DONE if it was answered, also where an item of it was
    refused."""
    position: str
    """Its place in the list, for ``behind`` of ``Operators.list_audit``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLog:
    """A part of the entries of all coordinators, the last one first."""

    entries: tuple[AuditEntry, ...]
    behind: str | None
    """The ``behind`` of the call for the entries before these; None: these were all."""
