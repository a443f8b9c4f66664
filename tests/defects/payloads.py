"""Defects of the files of payloads, and of the rows that name places in them."""

import asyncio
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from defects.defect import collector
from semel_runtime.journal.sqlite import journal_end
from semel_runtime.journal.sqlite.appender import Appender
from semel_runtime.journal.sqlite.payloads import holes, payload_files, payload_space
from semel_runtime.journal.sqlite.payloads.direct_writes import BlockBuffer
from semel_runtime.journal.sqlite.payloads.payload_files import (
    PayloadWriter,
    Place,
    files_in,
    path_of,
)
from semel_runtime.journal.sqlite.payloads.payload_space import Left, PayloadSpace, _Gap

DEFECTS, defect = collector()
_BLOCK_BYTES = holes.BLOCK_BYTES


def _system() -> Any:
    """Return what stands for the module ``os`` there."""
    return vars(payload_files)["os"]


# -- writing ---------------------------------------------------------------------------------------


@defect("payloads-not-synced", "the tables name payloads that are not on disk")
def _not_synced(patch: pytest.MonkeyPatch) -> None:
    write = PayloadWriter.write

    def written(self: PayloadWriter, payloads: Sequence[bytes]) -> Sequence[Place]:
        with pytest.MonkeyPatch.context() as within:
            within.setattr(_system(), "fdatasync", lambda _: None)
            return write(self, payloads)

    patch.setattr(PayloadWriter, "write", written)


@defect("payloads-behind-the-commit", "the tables' commit comes before the payloads are written")
def _behind(patch: pytest.MonkeyPatch) -> None:
    append, write_blocks = Appender._append_in_turn, PayloadWriter._write_blocks
    late: list[partial[None]] = []

    async def appended(self: Appender, *args: Any) -> float:
        seconds = await append(self, *args)
        while late:
            late.pop(0)()
        return seconds

    def written(self: PayloadWriter, payloads: Sequence[bytes], at: int) -> None:
        late.append(partial(write_blocks, self, payloads, at))

    patch.setattr(Appender, "_append_in_turn", appended)
    patch.setattr(PayloadWriter, "_write_blocks", written)


@defect("payload-write-cut-short", "the rest of a write that the system cuts short is not written")
def _cut_short(patch: pytest.MonkeyPatch) -> None:
    def written(self: PayloadWriter, payloads: Sequence[bytes], at: int) -> None:
        for blocks in BlockBuffer().blocks(payloads):
            self._write_some(blocks, at)
            at += len(blocks)

    patch.setattr(PayloadWriter, "_write_blocks", written)


@defect("payload-position-rounded-down", "an append begins in the last block of the one before")
def _rounded_down(patch: pytest.MonkeyPatch) -> None:
    write = PayloadWriter.write

    def written(self: PayloadWriter, payloads: Sequence[bytes]) -> Sequence[Place]:
        places = write(self, payloads)
        self._position = places[-1].end - places[-1].end % _BLOCK_BYTES
        return places

    patch.setattr(PayloadWriter, "write", written)


@defect("payload-file-not-named-durably", "the name of a new file of payloads is not synced")
def _not_named(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(payload_files, "sync_folder", lambda _: None)


@defect("older-claims-file-written-to", "a claim goes on with the last file of an older claim")
def _older_file(patch: pytest.MonkeyPatch) -> None:
    begin = PayloadWriter._begin_file

    def begun(self: PayloadWriter) -> None:
        number = max(files_in(self._folder), default=0)
        path = path_of(self._folder, number)
        size_bytes = path.stat().st_size if number else self._file_bytes
        if self._position or size_bytes >= self._file_bytes:
            begin(self)
            return
        self._descriptor = _system().open(path, os.O_WRONLY | os.O_CLOEXEC)
        self.file, self._position = number, size_bytes + -size_bytes % _BLOCK_BYTES

    patch.setattr(PayloadWriter, "_begin_file", begun)


# -- space -----------------------------------------------------------------------------------------


@defect("space-before-the-commit", "space comes back before the deletion is durable")
def _before_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(payload_space, "_COMMIT", "SELECT epoch FROM owner WHERE epoch = ?")


@defect("hole-rounded-outwards", "a hole has the blocks that a payload shares with its neighbours")
def _outwards(patch: pytest.MonkeyPatch) -> None:
    punch = holes.punch

    def punched(descriptor: int, start: int, end: int) -> bool:
        start, end = start - start % _BLOCK_BYTES, end + -end % _BLOCK_BYTES
        return punch(descriptor, start, end)

    patch.setattr(payload_space, "punch", punched)


@defect("file-removed-with-a-row-left", "a file goes with the first of its payloads")
def _row_left(patch: pytest.MonkeyPatch) -> None:
    async def is_unused(self: PayloadSpace, file: int) -> bool:
        return file != max(files_in(self._folder))

    patch.setattr(PayloadSpace, "_is_unused", is_unused)


@defect("space-of-readers-given-back", "space comes back under reads that have found the rows")
def _readers(patch: pytest.MonkeyPatch) -> None:
    give_back = PayloadSpace.give_back

    async def given(self: PayloadSpace) -> bool:
        reads, self._reads = self._reads, set()
        try:
            return await give_back(self)
        finally:
            self._reads = reads

    patch.setattr(PayloadSpace, "give_back", given)


@defect("look-after-the-commit", "the look for files without a row comes after the synced commit")
def _late_look(patch: pytest.MonkeyPatch) -> None:
    async def given(self: PayloadSpace) -> bool:
        if not self._freed:
            return False
        count = min(payload_space._STEP_MAX, len(self._freed))
        places = [self._freed.popleft() for _ in range(count)]
        await self._writer.execute(payload_space._COMMIT, (self._writer.epoch,))
        await self._writer.check_epoch()
        files = {place.file for place in places}
        unused = [file for file in files if await self._is_unused(file)]
        if self._reads:
            await asyncio.wait([*self._reads])
        await self._in_thread(partial(payload_space._remove, self._folder, unused))
        gaps = [_Gap(at.file, at.position, at.end) for at in places if at.file not in unused]
        await self._in_thread(partial(payload_space._punch, self._folder, gaps))
        return True

    patch.setattr(PayloadSpace, "give_back", given)


@defect("file-number-given-twice", "the file with the highest number is removed with its last row")
def _number_twice(patch: pytest.MonkeyPatch) -> None:
    async def is_unused(self: PayloadSpace, file: int) -> bool:
        return file != self.payloads.file and not await self._has(payload_space._IS_USED, file)

    patch.setattr(PayloadSpace, "_is_unused", is_unused)


@defect("claim-looks-too-late", "a claim looks for files without a row after its last commit")
def _too_late(patch: pytest.MonkeyPatch) -> None:
    look, begin = PayloadSpace.look, PayloadSpace.begin

    async def begun(self: PayloadSpace, _left: Left) -> None:
        await begin(self, await look(self))

    async def nothing(_self: PayloadSpace) -> Left:
        return Left([], [])

    patch.setattr(PayloadSpace, "look", nothing)
    patch.setattr(PayloadSpace, "begin", begun)


@defect("claim-removes-used-files", "a claim removes all files of older claims")
def _used_files(patch: pytest.MonkeyPatch) -> None:
    async def look(self: PayloadSpace) -> Left:
        return Left(sorted(files_in(self._folder))[:-1], [])

    patch.setattr(PayloadSpace, "look", look)


# -- starts ----------------------------------------------------------------------------------------


@defect("lost-payloads-accepted", "a start does not compare the rows with the files' lengths")
def _accepted(patch: pytest.MonkeyPatch) -> None:
    def lost(_connection: object, _folder: Path) -> str:
        return ""

    patch.setattr(journal_end, "lost_payloads", lost)
