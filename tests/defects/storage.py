"""Defects of the log in front of the tables, of the tables behind it, and of their readers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from defects.defect import collector
from semel_runtime.journal.contract import StoredBatch
from semel_runtime.journal.log import frames, segments
from semel_runtime.journal.log.frames import LoggedAppend, LogIdentity
from semel_runtime.journal.log.segments import FILES, Segments
from semel_runtime.journal.sqlite import appender as appender_module
from semel_runtime.journal.sqlite.appender import Appender
from semel_runtime.journal.sqlite.log_reading import FoundLog, read_log
from semel_runtime.journal.sqlite.statements import WriterConnection
from semel_runtime.journal.sqlite.table_filler import TableFiller

DEFECTS, defect = collector()


# -- the log ---------------------------------------------------------------------------------------


@defect("log-not-synced", "a frame is acknowledged before it is on disk")
def _not_synced(patch: pytest.MonkeyPatch) -> None:
    def written(self: Segments, frame: bytes, *, next_offset: int, stored: int) -> None:
        place = self._place(len(frame), stored)
        assert place is not None
        self._current, at = place
        _system().pwrite(self._descriptors[self._current], frame, at)
        self._ends[self._current], self._position = next_offset, at + len(frame)

    patch.setattr(Segments, "write", written)


@defect("log-synced-now-and-then", "a sync is left out for every other frame")
def _now_and_then(patch: pytest.MonkeyPatch) -> None:
    write = Segments.write

    def written(self: Segments, frame: bytes, *, next_offset: int, stored: int) -> None:
        if next_offset % 2:
            write(self, frame, next_offset=next_offset, stored=stored)
            return
        place = self._place(len(frame), stored)
        assert place is not None
        self._current, at = place
        _system().pwrite(self._descriptors[self._current], frame, at)
        self._ends[self._current], self._position = next_offset, at + len(frame)

    patch.setattr(Segments, "write", written)


@defect("log-write-cut-short", "the rest of a write that the system cuts short is not written")
def _cut_short(patch: pytest.MonkeyPatch) -> None:
    def written(self: Segments, frame: bytes, *, next_offset: int, stored: int) -> None:
        place = self._place(len(frame), stored)
        assert place is not None
        self._current, at = place
        _system().pwrite(self._descriptors[self._current], frame, at)
        _system().fdatasync(self._descriptors[self._current])
        self._ends[self._current], self._position = next_offset, at + len(frame)

    patch.setattr(Segments, "write", written)


@defect("log-file-written-again-early", "a file of the log begins again before the tables have it")
def _again_early(patch: pytest.MonkeyPatch) -> None:
    def place(self: Segments, size_bytes: int, _stored: int) -> tuple[int, int] | None:
        if self._position + size_bytes <= self._file_bytes:
            return self._current, self._position
        return (self._current + 1) % FILES, 0

    patch.setattr(Segments, "_place", place)


@defect("log-files-not-named-durably", "the names of new files of the log are not synced")
def _not_named(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(segments, "sync_folder", lambda _: None)


@defect("torn-frame-taken", "a start takes a frame whose checksum is wrong")
def _torn(patch: pytest.MonkeyPatch) -> None:
    def size(view: memoryview, at: int) -> int:
        if at + frames._PREFIX.size + frames._HEAD.size > len(view):
            return 0
        _, size_bytes, _ = frames._PREFIX.unpack_from(view, at)
        return int(size_bytes) if at + size_bytes <= len(view) else 0

    patch.setattr(frames, "_size_if_whole", size)


def _system() -> Any:
    """Return what stands for the module ``os`` there."""
    return vars(segments)["os"]


# -- claims ----------------------------------------------------------------------------------------


@defect("acknowledged-before-the-look", "an append is acknowledged without a look at the claim")
def _before_the_look(patch: pytest.MonkeyPatch) -> None:
    write = Appender._write

    def written(self: Appender, *args: Any) -> float:
        look, self._look = self._look, _Blind()  # type: ignore[assignment]  # stands for one
        try:
            return write(self, *args)
        finally:
            self._look = look

    patch.setattr(Appender, "_write", written)


class _Blind:
    def check(self, _epoch: int, _log: str) -> None:
        """Find every claim in place."""


@defect("tables-filled-without-a-claim", "the tables take appends of a process that was deposed")
def _without_a_claim(patch: pytest.MonkeyPatch) -> None:
    def end(self: WriterConnection, _epoch: int, _log: str) -> int:
        rows = self.execute("SELECT next_offset FROM positions").fetchone()
        return int(rows[0])

    patch.setattr(WriterConnection, "_checked_end", end)


@defect("log-not-carried-over", "a claim leaves the older log where it is")
def _not_carried_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(appender_module, "read_log", lambda *_, **__: FoundLog())


@defect("log-removed-before-it-is-read", "a claim removes older logs before it has read them")
def _removed_first(patch: pytest.MonkeyPatch) -> None:
    def removed(folder: Path, identity: LogIdentity, *, start: int) -> FoundLog:
        segments.remove_logs(folder, below=identity.number + 1)
        return read_log(folder, identity, start=start)

    patch.setattr(appender_module, "read_log", removed)


@defect("older-logs-taken", "a claim takes the frames of older logs, whatever their mark")
def _older_logs(patch: pytest.MonkeyPatch) -> None:
    def found(folder: Path, identity: LogIdentity, *, start: int) -> FoundLog:
        if not identity.mark:
            return FoundLog()
        appends: list[LoggedAppend] = []
        for number in range(1, identity.number + 1):
            for path in segments.files_of(folder, number):
                appends += _frames_of_any_log(path.read_bytes(), start)
        appends.sort(key=lambda append: append.base_offset)
        taken: list[LoggedAppend] = []
        for append in appends:
            if append.base_offset == (taken[-1].next_offset if taken else start):
                taken.append(append)
        return FoundLog(taken)

    patch.setattr(appender_module, "read_log", found)


def _frames_of_any_log(data: bytes, start: int) -> list[LoggedAppend]:
    """Return the whole frames of a file, whatever their mark."""
    marks: set[int] = set()
    at = data.find(frames._MAGIC)
    while at >= 0:
        marks.add(int.from_bytes(data[at + frames._PREFIX.size :][:8]))
        at = data.find(frames._MAGIC, at + 1)
    return [each for mark in marks for each in frames.frames_of(data, mark=mark, start=start)]


@defect("stop-without-filling", "a process that stops removes a log that the tables lack")
def _without_filling(patch: pytest.MonkeyPatch) -> None:
    async def closed(self: TableFiller) -> None:
        await self.stop()

    patch.setattr(TableFiller, "close", closed)


@defect("witness-ahead", "the witness hears of a frame before the frame is on disk")
def _witness_ahead(patch: pytest.MonkeyPatch) -> None:
    write = Appender._write

    def written(self: Appender, found: Segments, append: LoggedAppend, *rest: Any) -> float:
        self._witness.appended(append.next_offset)
        return write(self, found, append, *rest)

    patch.setattr(Appender, "_write", written)


# -- the tables, and readers -----------------------------------------------------------------------


@defect("stored-too-early", "frames count as filled in before the tables have them")
def _too_early(patch: pytest.MonkeyPatch) -> None:
    add = TableFiller.add

    def added(self: TableFiller, append: LoggedAppend) -> None:
        add(self, append)
        self.stored = append.next_offset

    patch.setattr(TableFiller, "add", added)


@defect("readers-ahead-of-the-tables", "readers of batches do not wait for the tables")
def _readers(patch: pytest.MonkeyPatch) -> None:
    caught_up = Appender.caught_up

    async def waited(self: Appender, partition: int | None = None) -> None:
        if partition is None:
            await caught_up(self)

    patch.setattr(Appender, "caught_up", waited)


@defect("snapshot-ahead-of-the-tables", "a snapshot does not wait for the tables")
def _snapshot(patch: pytest.MonkeyPatch) -> None:
    caught_up = Appender.caught_up

    async def waited(self: Appender, partition: int | None = None) -> None:
        if partition is not None:
            await caught_up(self, partition)

    patch.setattr(Appender, "caught_up", waited)


@defect("memory-answers-for-the-tables", "batches that the tables have are left out in a read")
def _memory(patch: pytest.MonkeyPatch) -> None:
    newest = TableFiller.newest

    def read(
        self: TableFiller, partition: int, offset: int, *, max_bytes: int, upto: int
    ) -> Sequence[StoredBatch] | None:
        known = self._batches.get(partition)
        if known is not None:
            offset = max(offset, known[0].base_offset)
        return newest(self, partition, offset, max_bytes=max_bytes, upto=upto)

    patch.setattr(TableFiller, "newest", read)


@defect("forgotten-before-the-tables", "memory forgets batches before the tables have them")
def _forgotten(patch: pytest.MonkeyPatch) -> None:
    put = TableFiller._put

    async def late(self: TableFiller, appends: Sequence[LoggedAppend], *rest: Any) -> float:
        kept = self._batches
        self._batches = {}
        try:
            return await put(self, appends, *rest)
        finally:
            added, self._batches = self._batches, kept
            for partition, some in added.items():
                self._batches.setdefault(partition, []).extend(some)

    patch.setattr(TableFiller, "_put", late)
