"""What an instance keeps of the controller's journal: a note of its own volume.

The note is no record, so it moves no journal's end. It is written only when the end of the
controller's journal has moved.
"""

import msgspec
from msgspec import Struct

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_runtime.claims import JournalMark
from semel_runtime.journal.contract import Journal

_NOTE = "controller"


class _Note(Struct, frozen=True, kw_only=True):
    cluster_id: str
    mark: JournalMark


class ControllerMemory:
    """The last mark of the controller's journal, and of which cluster's."""

    def __init__(self, journal: Journal) -> None:
        """Read the note."""
        self._journal = journal
        noted = journal.note(_NOTE)
        self._note = msgspec.json.decode(noted, type=_Note) if noted else None

    @property
    def cluster_id(self) -> str:
        """The cluster of the controller; empty: none is known."""
        return "" if self._note is None else self._note.cluster_id

    @property
    def mark(self) -> JournalMark | None:
        """How far the controller's journal went."""
        return None if self._note is None else self._note.mark

    async def keep(self, cluster_id: str, mark: JournalMark) -> None:
        """Keep a mark, durably."""
        note = _Note(cluster_id=cluster_id, mark=mark)
        if note != self._note:
            await self._journal.set_note(_NOTE, msgspec.json.encode(note).decode())
            self._note = note


def mark_to_wire(mark: JournalMark) -> wire.JournalMark:
    """Write a mark."""
    return wire.JournalMark(
        claim_epoch=mark.claim_epoch, claim_token=mark.claim_token, end_offset=mark.end_offset
    )


def mark_from_wire(mark: wire.JournalMark) -> JournalMark:
    """Read a mark."""
    return JournalMark(
        claim_epoch=mark.claim_epoch, claim_token=mark.claim_token, end_offset=mark.end_offset
    )
