"""Appending: through the log, or straight into the tables.

An append is written to the log and synced in a thread; then comes the look whether the claim still
holds, then the witness, then the acknowledgement. The tables follow behind.

The payloads of a large append are written to a file of their own and synced; the commit of the
tables, which name their places, checks the claim and acknowledges them. An append that follows a
deletion goes into the tables, too: their sync makes the deletion durable.
"""

import asyncio
import secrets
import sqlite3
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import structlog

from semel_runtime.journal.contract import StoredBatch
from semel_runtime.journal.journal_errors import (
    JournalCorruptError,
    JournalError,
    JournalFencedError,
    JournalUnknownError,
)
from semel_runtime.journal.log.frames import LoggedAppend, LogIdentity, encode
from semel_runtime.journal.log.log_thread import LogThread
from semel_runtime.journal.log.segments import FILES, Segments, remove_logs
from semel_runtime.journal.sqlite.batch_ends import BatchEnds
from semel_runtime.journal.sqlite.claim_look import LOOK, ClaimLook, check_claim
from semel_runtime.journal.sqlite.connections import Readers, Writer
from semel_runtime.journal.sqlite.journal_end import WitnessedLog
from semel_runtime.journal.sqlite.log_reading import NOTED_LOG, log_of, log_text, read_log
from semel_runtime.journal.sqlite.options import SqliteOptions
from semel_runtime.journal.sqlite.payloads.payload_files import Place
from semel_runtime.journal.sqlite.payloads.payload_space import PayloadSpace
from semel_runtime.journal.sqlite.statements import AppendsParameters, LogParameters
from semel_runtime.journal.sqlite.table_filler import TableFiller

log = structlog.get_logger(__name__)


class Appender:
    """Appends to one journal. Nothing may be appended before `begin`."""

    def __init__(
        self,
        file: Path,
        writer: Writer,
        readers: Readers,
        witness: WitnessedLog,
        space: PayloadSpace,
        options: SqliteOptions,
    ) -> None:
        self._folder = file.parent
        self._space = space
        self._writer = writer
        self._witness = witness
        self._options = options
        self._look = ClaimLook(file)
        self._ends = BatchEnds(readers)
        self._thread: LogThread | None = None
        self._segments: Segments | None = None
        self._identity = LogIdentity(0, 0)
        self.filler: TableFiller | None = None
        """What the tables lack; None before `begin`."""
        self._next_offset = 0
        self._last: asyncio.Future[float] | None = None
        self._fenced: JournalFencedError | None = None
        self._closed = False

    async def begin(self, epoch: int) -> int:
        """Put what an older log has into the tables, and begin a log; return the journal's end.

        The claim of that epoch is durable already. Raises JournalCorruptError for a log that lacks
        records in its midst, JournalFencedError, JournalUnknownError.
        """
        await self._settle()
        if self.filler is not None:
            await self.filler.stop()  # The log has what it lacks.
        self._last = self._fenced = None
        text, next_offset = await self._carry_over(epoch)
        number = log_of(text).number + 1
        self._identity = LogIdentity(number, secrets.randbits(63) | 1)
        after = log_text(self._identity)
        left = await self._space.look()
        await self._writer.execute("LOG", LogParameters(epoch, text, after))
        if self._segments is not None:
            self._segments.close()
        try:
            await asyncio.to_thread(remove_logs, self._folder, below=number)
        except OSError as error:
            raise self._writer.dead(f"an old log in {self._folder} stays: {error}") from error
        await self._space.begin(left)
        file_bytes = self._options.log_bytes // FILES
        self._segments = Segments(self._folder, number, file_bytes=file_bytes)
        self.filler = TableFiller(self._writer, epoch=epoch, log=after, stored=next_offset)
        self._next_offset = next_offset
        self._ends.forget()
        return next_offset

    async def _carry_over(self, epoch: int) -> tuple[str, int]:
        """Put what the log has into the tables; return its text and the end of the journal."""
        rows = await self._writer.execute(NOTED_LOG)
        text = str(rows[0][0]) if rows else ""
        rows = await self._writer.execute("SELECT next_offset FROM positions")
        start = int(rows[0][0])
        try:
            found = await asyncio.to_thread(read_log, self._folder, log_of(text), start=start)
        except (OSError, ValueError) as error:
            raise self._writer.dead(f"the log in {self._folder} is unreadable: {error}") from error
        if found.gap and self._options.end_checked:
            raise JournalCorruptError(found.gap)
        if found.appends:
            await self._writer.execute("INSERT", AppendsParameters(epoch, text, found.appends))
        return text, found.end(start)

    @property
    def waiting_bytes(self) -> int:
        """Bytes that are in the log, and that the tables will take."""
        return 0 if self.filler is None else self.filler.waiting_bytes

    async def caught_up(self, partition: int | None = None) -> None:
        """Wait until the tables have all that was appended, at least of a partition.

        Raises JournalFencedError, JournalUnknownError.
        """
        if self.filler is not None:
            await self.filler.caught_up(partition)

    def newest(
        self, partition: int, offset: int, *, max_bytes: int, upto: int
    ) -> Sequence[StoredBatch] | None:
        """Read what the tables lack, see `TableFiller.newest`."""
        if self.filler is None:
            return None
        return self.filler.newest(partition, offset, max_bytes=max_bytes, upto=upto)

    async def append(self, append: LoggedAppend) -> float:
        """Append durably, and return the seconds that it took. Cancelling loses only the result.

        Raises JournalFencedError, JournalUnknownError.
        """
        self._check(append.base_offset)
        self._next_offset = append.next_offset
        if self._may_start(append):
            self._last = self._start(append)
        else:
            self._last = asyncio.ensure_future(self._append_in_turn(self._last, append))
            self._last.add_done_callback(self._note_failure)
        return await asyncio.shield(self._last)

    async def verify(self, at: int) -> None:
        """Raise what an append at an offset would raise."""
        await self._settle()
        self._check(at)
        (found,) = await self._writer.execute(LOOK)
        try:
            check_claim(found, self._writer.epoch, log_text(self._identity))
        except JournalUnknownError as error:
            raise self._writer.dead(str(error)) from error

    async def close(self) -> None:
        """Put all that is in the log into the tables, and remove the log.

        If that fails, the log stays, and the next claim does it. Idempotent.
        """
        await self._settle()
        self._closed = True
        filler, self.filler = self.filler, None
        if filler is not None:
            try:
                await filler.close()
                await self._end_log()
            except (JournalError, OSError) as error:
                log.info(
                    "the log of a journal stays: its next owner puts it into the tables",
                    folder=str(self._folder),
                    reason=str(error),
                )
        if self._thread is not None:
            await self._thread.close()
        if self._segments is not None:
            self._segments.close()
        self._space.close()
        self._look.close()

    async def _end_log(self) -> None:
        before, number = log_text(self._identity), self._identity.number
        after = log_text(LogIdentity(number, 0))
        parameters = LogParameters(self._writer.epoch, before, after)
        await self._writer.execute("LOG", parameters)
        await asyncio.to_thread(remove_logs, self._folder, below=number + 1)

    async def _settle(self) -> None:
        """Wait until the last append has ended, however it ends."""
        if self._last is not None:
            await asyncio.wait([self._last])

    def _check(self, at: int) -> None:
        if self._fenced is not None:
            raise self._fenced
        self._writer.check_alive()
        if self._closed:
            raise JournalUnknownError("the handle is closed")
        if at != self._next_offset:
            raise self._writer.dead(f"append at {at}, but the journal ends at {self._next_offset}")

    def _may_start(self, append: LoggedAppend) -> bool:
        """Whether an append can be written to the log now, without a wait; else nothing is done."""
        last = self._last
        return (
            (last is None or (last.done() and _failure_of(last) is None))
            and self._is_for_log(append)
            and self._has_room(append)
            and self._ends.take(append.batches)
        )

    def _is_for_log(self, append: LoggedAppend) -> bool:
        size_bytes = append.size_bytes
        return (
            size_bytes <= self._options.logged_bytes_max
            and size_bytes <= self._options.log_bytes // FILES
            and not self._writer.owes_sync
        )

    def _has_room(self, append: LoggedAppend) -> bool:
        segments, filler = self._parts()
        return segments.takes(append.size_bytes, stored=filler.stored)

    async def _append_in_turn(
        self, before: "asyncio.Future[float] | None", append: LoggedAppend
    ) -> float:
        segments, filler = self._parts()
        if before is not None:
            await asyncio.wait([before])
            if (failure := _failure_of(before)) is not None:
                raise failure
        try:
            await self._ends.learn(append.batches)
        except JournalError as error:
            raise self._writer.dead(f"the ends of partitions are unknown: {error}") from error
        if not self._ends.take(append.batches):
            raise self._writer.dead("misplaced: a batch begins before the end of its partition")
        if self._is_for_log(append) and await self._is_made(segments):
            if not self._has_room(append):
                await filler.caught_up()
            return await self._start(append)
        await filler.caught_up()
        started = time.perf_counter()
        places = await self._write_payloads(append)
        seconds = time.perf_counter() - started
        self._writer.owes_sync = False
        return seconds + await filler.put(append, places)

    async def _write_payloads(self, append: LoggedAppend) -> Sequence[Place]:
        """Write the payloads of a large append to a file; return no places for a small append."""
        payloads = [batch.payload for batch in append.batches]
        if sum(map(len, payloads)) <= self._options.logged_bytes_max:
            return ()
        try:
            return await asyncio.to_thread(self._space.payloads.write, payloads)
        except OSError as error:
            raise self._writer.dead(
                f"writing payloads in {self._folder} failed: {error}"
            ) from error

    async def _is_made(self, segments: Segments) -> bool:
        """Make the files of the log, if need be; answer whether the disk has the room."""
        if segments.is_made:
            return True
        try:
            return await asyncio.to_thread(segments.make)
        except OSError as error:
            raise self._writer.dead(f"no log can be made: {error}") from error

    def _start(self, append: LoggedAppend) -> "asyncio.Future[float]":
        segments, filler = self._parts()
        self._thread = self._thread or LogThread()
        work = partial(self._write, segments, append, filler.stored, self._writer.epoch)
        future = self._thread.run(work)
        future.add_done_callback(partial(self._written, append))
        return future

    def _write(self, segments: Segments, append: LoggedAppend, stored: int, epoch: int) -> float:
        """Write, sync, look, and let the witness know: in the log's thread."""
        started = time.perf_counter()
        frame = encode(append, mark=self._identity.mark, claim_epoch=epoch)
        try:
            segments.write(frame, next_offset=append.next_offset, stored=stored)
            self._look.check(epoch, log_text(self._identity))
            self._witness.appended(append.next_offset)
        except (OSError, sqlite3.Error) as error:
            raise JournalUnknownError(
                f"writing the log in {self._folder} failed: {error}"
            ) from error
        return time.perf_counter() - started

    def _written(self, append: LoggedAppend, done: "asyncio.Future[float]") -> None:
        if _failure_of(done) is None:
            self._parts()[1].add(append)
            self._writer.sync_witness()
        else:
            self._note_failure(done)

    def _note_failure(self, done: "asyncio.Future[float]") -> None:
        match _failure_of(done):
            case None:
                pass
            case JournalFencedError() as fenced:
                self._fenced = fenced
            case error:
                self._writer.dead(str(error))

    def _parts(self) -> tuple[Segments, TableFiller]:
        assert self._segments is not None, "claim comes before everything else"
        assert self.filler is not None, "claim comes before everything else"
        return self._segments, self.filler


def _failure_of(done: "asyncio.Future[float]") -> BaseException | None:
    if done.cancelled():
        return JournalUnknownError("an append was cancelled while the process ends")
    return done.exception()
