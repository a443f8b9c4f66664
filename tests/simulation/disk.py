"""The disk of a service: the real engine of its journal, on simulated files and threads.

The log in front of the tables, the task that fills them, and all that reads them are the product's.
Simulated are the calls to the system (`files`), the threads (`threads`) and the connections to
SQLite (`tables`). Each part loses its own unsynced writes.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol, cast

import pytest

from semel_runtime.journal import witness
from semel_runtime.journal.chunks import unpack_piece, unpack_records
from semel_runtime.journal.contract import Entry, StoredBatch
from semel_runtime.journal.log import segments
from semel_runtime.journal.log.frames import LoggedAppend
from semel_runtime.journal.sqlite import appender, journal_end
from semel_runtime.journal.sqlite.claim_look import LOOK, check_claim
from semel_runtime.journal.sqlite.log_index import LogEnd
from semel_runtime.journal.sqlite.payloads import holes, payload_files, payload_space
from semel_runtime.journal.sqlite.payloads.payload_rows import stored_batches
from simulation.files import Folder, SimulatedOs, SimulatedPath
from simulation.tables import Tables
from simulation.threads import SimulatedThread, pause
from simulation.world import Life

_LOOK_S = 3e-5
_STEP_MAX = 1
"""One payload, so that the space of a file comes back in several steps."""
_BATCHES = """
SELECT * FROM batches
WHERE partition = ? ORDER BY base_offset
"""
_CHUNK = "SELECT record_count, data FROM chunks WHERE base_offset = ?"


class Observer(Protocol):
    """An observer of the records that became durable."""

    def appended(self, at: int, records: int) -> None:
        """Be told of records."""
        ...

    def rewritten(
        self, partition: int, before: Sequence[StoredBatch], after: Sequence[StoredBatch]
    ) -> None:
        """Be told of batches that were removed or replaced."""
        ...

    def broken(self, what: str) -> None:
        """Be told that a journal has broken its promise."""
        ...


class Unwatched:
    """An observer that keeps nothing."""

    def appended(self, at: int, records: int) -> None:
        """See `Observer`."""

    def rewritten(
        self, partition: int, before: Sequence[StoredBatch], after: Sequence[StoredBatch]
    ) -> None:
        """See `Observer`."""

    def broken(self, what: str) -> None:
        """See `Observer`."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a volume, as a snapshot of its storage makes it."""

    tables: bytes
    files: dict[str, bytes]
    epoch: int
    next_offset: int


class SimulatedVolume:
    """A volume that takes its time, over all processes that have it."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.folder = Folder(random)
        self.tables = Tables(self.folder)
        self.free_bytes = 1 << 40
        self._told = 0
        """Observers know of all records below this offset."""
        self._owners: dict[str, Observer] = {}
        """By the text of their log."""
        self._unfilled: deque[LoggedAppend] = deque()
        """The acknowledged appends that the tables lack."""

    @property
    def sync_ms(self) -> tuple[float, float]:
        """How long a sync takes, between these two."""
        return self.folder.sync_ms

    @sync_ms.setter
    def sync_ms(self, sync_ms: tuple[float, float]) -> None:
        self.folder.sync_ms = sync_ms

    # -- faults ----------------------------------------------------------------------------------

    def end_process(self, life: Life) -> bool:
        """Let a process end at once; answer whether its machine has lost its power."""
        is_lost = self._random.random() < 0.7
        if is_lost:
            self.lose_power()
        else:
            self.tables.end(life, self._random)
        return is_lost

    def lose_power(self) -> None:
        """Let all processes end at once, and lose all unsynced changes."""
        self.tables.end(None, self._random)
        self.folder.lose_power()
        self.tables.lose_power(self._random)

    def copy(self) -> Copy:
        """Copy it as it is now."""
        end = self.tables.found_end().end
        tables = self.tables.connection.serialize()
        return Copy(tables, self.folder.content(), end.claim_epoch, end.next_offset)

    @classmethod
    def of(cls, copy: Copy, random: Random) -> "SimulatedVolume":
        """Make a volume of a copy."""
        made = cls(random)
        made.tables.put(copy.tables)
        made.folder.put(copy.files)
        made._told = copy.next_offset
        return made

    # -- its content -----------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The claim epoch."""
        return int(self.tables.fetch("SELECT epoch FROM owner")[0][0])

    @property
    def next_offset(self) -> int:
        """Where the journal ends, for a process that claims it now."""
        return self.tables.found_end().end.next_offset

    def note(self, name: str) -> str:
        """Return a note of the volume; empty: there is none."""
        rows = self.tables.fetch("SELECT value FROM meta WHERE key = ?", (f"note:{name}",))
        return str(rows[0][0]) if rows else ""

    def batches_of(self, partition: int) -> list[StoredBatch]:
        """Return the acknowledged batches of a partition."""
        folder = cast(Path, SimulatedPath(self.folder))
        stored = stored_batches(folder, self.tables.fetch(_BATCHES, (partition,)))
        logged = (batch for append in self._unfilled for batch in append.batches)
        return [*stored, *(batch for batch in logged if batch.partition == partition)]

    def entries(self) -> Iterator[Entry]:
        """Yield the snapshot's entries and all acknowledged records after it."""
        fetch = self.tables.fetch
        ((snapshot, first_offset),) = fetch("SELECT snapshot, first_offset FROM owner")
        pieces = "SELECT * FROM snapshot_pieces WHERE snapshot = ? ORDER BY number"
        for piece in fetch(pieces, (snapshot,)):
            yield from unpack_piece(*piece)
        stored = fetch("SELECT * FROM chunks ORDER BY base_offset")
        logged = [
            (each.base_offset, each.record_count, each.crc32c, each.data) for each in self._unfilled
        ]
        for row in (*stored, *logged):
            yield from (entry for entry in unpack_records(*row) if entry[0] >= first_offset)

    # -- what its handles tell -------------------------------------------------------------------

    def acknowledged(self, observer: Observer, append: LoggedAppend) -> None:
        """Be told that an append is acknowledged."""
        if append.base_offset >= self._told:
            self._unfilled.append(append)
            self._tell(observer, append)
        elif not self._has(append):
            observer.broken(f"the acknowledged append at {append.base_offset} is another one")

    def logged(self, observer: Observer, text: str) -> None:
        """Be told that a handle's log is in front of the tables, which have everything by now."""
        self._owners[text] = observer
        if self.folder.at_next_claim is not None:
            self.folder.at_next_claim()
            self.folder.at_next_claim = None
        if self._unfilled:
            at = self._unfilled[0].base_offset
            observer.broken(f"a claim lost acknowledged records from {at} on")

    def stored(self, text: str, appends: Sequence[LoggedAppend]) -> None:
        """Be told that the tables have appends, of the log of that text."""
        observer = self._owners.get(text)
        for append in appends:
            if self._unfilled and self._unfilled[0].base_offset == append.base_offset:
                known = self._unfilled.popleft()
                if observer is not None and _as_tuples(known) != _as_tuples(append):
                    observer.broken(f"the acknowledged append at {append.base_offset} has changed")
            if observer is not None:
                self._tell(observer, append)

    def _has(self, append: LoggedAppend) -> bool:
        """Whether the journal has an append of this content, or a snapshot in its place."""
        if append in self._unfilled:
            return True
        rows = self.tables.fetch(_CHUNK, (append.base_offset,))
        ((first_offset,),) = self.tables.fetch("SELECT first_offset FROM owner")
        return append.base_offset < first_offset or rows == [(append.record_count, append.data)]

    def _tell(self, observer: Observer, append: LoggedAppend) -> None:
        if append.base_offset == self._told:
            self._told = append.next_offset
            observer.appended(append.base_offset, append.record_count)
        elif append.base_offset > self._told:
            observer.broken(f"an append at {append.base_offset}, but the end is {self._told}")


def _as_tuples(append: LoggedAppend) -> tuple[object, ...]:
    return append.base_offset, append.record_count, append.data, tuple(append.batches)


class _Look:
    """Stands for ``ClaimLook``."""

    def __init__(self, file: SimulatedPath) -> None:
        self._tables = Tables.at(file)

    def check(self, epoch: int, log: str) -> None:
        """See ``ClaimLook``."""
        (found,) = self._tables.fetch(LOOK)
        check_claim(found, epoch, log)
        pause(_LOOK_S)

    def close(self) -> None:
        """See ``ClaimLook``."""


class _Index:
    """Stands for ``LogIndex``: there are commits, and no log of SQLite's."""

    def __init__(self, file: SimulatedPath) -> None:
        self._tables = Tables.at(file)

    def end(self) -> LogEnd:
        """See ``LogIndex``."""
        return LogEnd(0, self._tables.commits)

    def close(self) -> None:
        """See ``LogIndex``."""


class _Chance:
    """Stands for the module ``secrets``."""

    def __init__(self, random: Random) -> None:
        self.randbits = random.getrandbits


@contextmanager
def simulated_disks(random: Random) -> Iterator[None]:
    """Let the engine have simulated files and threads for a while."""
    system = SimulatedOs()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "os", system)
        patch.setattr(witness, "os", system)
        patch.setattr(payload_files, "os", system)
        patch.setattr(payload_files, "write_past_cache", system.write_past_cache)
        patch.setattr(payload_space, "os", system)
        patch.setattr(holes, "_FALLOCATE", system.punch)
        patch.setattr(payload_space, "_STEP_MAX", _STEP_MAX)
        patch.setattr(payload_space, "_SLACK_BYTES", 0)
        patch.setattr(journal_end, "LogIndex", _Index)
        patch.setattr(journal_end, "_read_end", lambda file: Tables.at(file).found_end())
        patch.setattr(appender, "LogThread", SimulatedThread)
        patch.setattr(appender, "ClaimLook", _Look)
        patch.setattr(appender, "secrets", _Chance(random))
        yield
