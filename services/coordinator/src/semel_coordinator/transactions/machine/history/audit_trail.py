"""The list of what operators did at one instance: the last requests that changed something. Pure.

Theory of operation. An entry is written before its request is carried out, and durable by then: no
deed is missing, whatever breaks afterwards. How the request ended is written behind it, lazily; an
entry without an end belongs to a request that a crash has cut off, or that is still at work.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

_PART = 100
"""Entries in one record of a snapshot."""


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One request."""

    number: int
    """Counts the entries of this instance."""
    time_ms: int
    """Never before that of the entry before it, wherever the clock went."""
    action: str
    """The name of its RPC."""
    what: str
    """The request as text, its beginning."""
    principal: str
    address: str
    """Empty: not known."""
    operator: str = ""
    """In their own words, as the reason is; empty: the request has no such field."""
    reason: str = ""
    end: str = ""
    """DONE, or the code of the error; empty: not known."""


class AuditNoted(Struct, frozen=True, kw_only=True):
    """New entries, or entries as they are now."""

    entries: tuple[AuditEntry, ...]


class AuditFilter(Struct, frozen=True, kw_only=True):
    """The entries that are wanted: they pass everything that is given."""

    actions: frozenset[str] = frozenset()
    """Empty: all."""
    principal: str = ""
    """Empty: all."""
    address: str = ""
    """Empty: all."""
    from_ms: int = 0
    before_ms: int | None = None

    def wants(self, entry: AuditEntry) -> bool:
        """Whether an entry fits."""
        return (
            (not self.actions or entry.action in self.actions)
            and self.principal in ("", entry.principal)
            and self.address in ("", entry.address)
            and entry.time_ms >= self.from_ms
            and (self.before_ms is None or entry.time_ms < self.before_ms)
        )


class AuditTrail:
    """The last entries of one instance."""

    def __init__(self, entries_max: int) -> None:
        """Begin with nothing."""
        self._entries_max = entries_max
        self._entries: dict[int, AuditEntry] = {}
        """By number, rising."""
        self._next = 0
        self._newest_ms = 0

    def __len__(self) -> int:
        """Return how many entries are kept."""
        return len(self._entries)

    # -- decisions -----------------------------------------------------------------------------

    def note(
        self,
        *,
        action: str,
        what: str,
        principal: str,
        address: str,
        operator: str,
        reason: str,
        now_ms: int,
    ) -> AuditNoted:
        """Return the record of a request that is about to be carried out."""
        entry = AuditEntry(
            number=self._next,
            time_ms=max(now_ms, self._newest_ms),
            action=action,
            what=what,
            principal=principal,
            address=address,
            operator=operator,
            reason=reason,
        )
        return AuditNoted(entries=(entry,))

    def ended(self, number: int, end: str) -> AuditNoted | None:
        """Return the record of how a request ended; None: its entry is not kept any more."""
        entry = self._entries.get(number)
        return None if entry is None else AuditNoted(entries=(replace(entry, end=end),))

    # -- changes: replay alone calls this ------------------------------------------------------

    def replay(self, record: AuditNoted) -> None:
        """Take entries; the oldest ones go when there are too many."""
        for entry in record.entries:
            self._entries[entry.number] = entry
            self._next = max(self._next, entry.number + 1)
            self._newest_ms = max(self._newest_ms, entry.time_ms)
        surplus = len(self._entries) - self._entries_max
        for number in list(islice(self._entries, max(0, surplus))):
            del self._entries[number]

    # -- questions -----------------------------------------------------------------------------

    def snapshot(self) -> Iterator[AuditNoted]:
        """Yield records that make the same state."""
        entries = tuple(self._entries.values())
        for start in range(0, len(entries), _PART):
            yield AuditNoted(entries=entries[start : start + _PART])

    def newest_first(self) -> Sequence[AuditEntry]:
        """Return all entries as they are now."""
        return list(reversed(self._entries.values()))
