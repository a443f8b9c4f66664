"""A connection that writes, and when it may be believed.

Theory of operation. A commit waits until a standby has confirmed it. A cancelled wait leaves a
commit that has succeeded on this one server, and a warning beside it. Drivers cancel statements
when their caller is cancelled and when their own time-outs end. So here

* writes run in tasks of their own, which are never cancelled: a caller loses only its wait;
* their time is bounded by ending the connection, which cancels nothing on the server;
* any warning, and any error that is not our own, makes the outcome unknown;
* after that the handle is dead: only a new claim, which waits for whatever this connection may
  still do, and a read tell what happened;
* a connection that is lost while nothing is written kills the handle too, since another one may
  claim the journal meanwhile.

Writes on one connection take turns in the order in which they were asked for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import asyncpg

from semel_runtime.journal.journal_errors import (
    JournalError,
    JournalFencedError,
    JournalUnknownError,
)
from semel_runtime.journal.postgres.connections import Connection, Row, Value

T = TypeVar("T")

_CLOSE_TIMEOUT_S = 5.0


class Handle:
    """What the connections of one handle share: its claim, and whether it lives."""

    def __init__(self) -> None:
        self._epoch: int | None = None
        self._failure: BaseException | None = None
        self._listener: Callable[[JournalUnknownError], None] | None = None

    @property
    def epoch(self) -> int:
        """The epoch that this handle has claimed."""
        assert self._epoch is not None, "claim comes before everything else"
        return self._epoch

    def own(self, epoch: int) -> None:
        """Note a successful claim."""
        self._epoch = epoch

    def check_alive(self) -> None:
        """Raise JournalUnknownError if an outcome is unknown, or the handle closed."""
        if self._failure is not None:
            raise JournalUnknownError(f"the handle is dead: {self._failure}") from self._failure

    def on_death(self, listener: Callable[[JournalUnknownError], None] | None) -> None:
        """Tell one listener of the death, at once if that is past; None: no listener."""
        self._listener = listener
        if self._failure is not None:
            self._tell(_unknown(self._failure))

    def die(self, error: BaseException) -> JournalUnknownError:
        """Give up on this handle, and return the error to raise."""
        self._failure = self._failure or error
        unknown = _unknown(error)
        self._tell(unknown)
        return unknown

    def _tell(self, error: JournalUnknownError) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener(error)


class Writer:
    """One connection. Each call is one transaction."""

    def __init__(self, connection: Connection, handle: Handle, *, timeout_ms: int) -> None:
        self._connection = connection
        self._handle = handle
        self._timeout_ms = timeout_ms
        self._last: asyncio.Task[object] | None = None
        self._warning = ""
        self._expired = False
        connection.add_log_listener(self._note_warning)
        connection.add_termination_listener(self._note_loss)

    @property
    def epoch(self) -> int:
        """The epoch that this handle has claimed."""
        return self._handle.epoch

    async def execute(self, statement: str, *parameters: Value) -> Sequence[Row]:
        """Run one statement durably and return its rows; raises what `run` raises."""
        return await self.run(lambda connection: connection.fetch(statement, *parameters))

    async def run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Do one transaction's work, durably. Cancelling the caller loses only the answer.

        Raises a JournalError of the work's own; JournalUnknownError for anything else, now and ever
        after.
        """
        self._handle.check_alive()
        task = asyncio.create_task(self._take_turn(self._last, work), name="write to PostgreSQL")
        task.add_done_callback(_retrieve)
        self._last = task
        return await asyncio.shield(task)

    async def check_epoch(self) -> None:
        """Raise JournalFencedError if another owner has claimed the journal."""
        rows = await self.execute("SELECT epoch FROM owner")
        if rows[0][0] != self.epoch:
            raise JournalFencedError(claim_epoch=self.epoch, stored_epoch=rows[0][0])

    async def fenced(self) -> JournalUnknownError:
        """Raise JournalFencedError, or return the error to raise if the epoch is ours."""
        await self.check_epoch()
        return self.dead("a write was fenced, but the epoch is ours")

    def dead(self, why: str) -> JournalUnknownError:
        """Give up on this handle, and return the error to raise."""
        return self._handle.die(JournalUnknownError(why))

    async def close(self) -> None:
        """Close after all that is under way.

        Closing a connection that is busy would cancel its statement.
        """
        if self._last is not None:
            await asyncio.wait({self._last})
        try:
            await self._connection.close(timeout=_CLOSE_TIMEOUT_S)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            self._connection.terminate()

    async def _take_turn(
        self,
        previous: asyncio.Task[object] | None,
        work: Callable[[Connection], Awaitable[T]],
    ) -> T:
        if previous is not None and not previous.done():
            await asyncio.wait({previous})
        self._handle.check_alive()
        timeout_s = self._timeout_ms / 1000
        timer = asyncio.get_running_loop().call_later(timeout_s, self._expire)
        try:
            return await self._believe(work)
        finally:
            timer.cancel()

    async def _believe(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Answer what the work answers, if nothing speaks against it."""
        self._warning = ""
        try:
            answer = await work(self._connection)
        except JournalError as error:
            if self._warning:
                raise self._give_up(JournalUnknownError(self._warning)) from error
            raise
        except BaseException as error:
            if self._expired:
                why = f"no answer within {self._timeout_ms} ms; the connection was ended"
                raise self._give_up(JournalUnknownError(why)) from error
            raise self._give_up(error) from error
        if self._warning:
            raise self._give_up(JournalUnknownError(self._warning))
        return answer

    def _give_up(self, error: BaseException) -> JournalUnknownError:
        self._connection.terminate()
        return self._handle.die(error)

    def _expire(self) -> None:
        self._expired = True
        self._connection.terminate()

    def _note_warning(self, connection: object, message: asyncpg.PostgresLogMessage) -> None:
        """Keep what the server says. It comes before the end of the statement that it is about."""
        del connection
        self._warning = f"the server warns: {message.message}"

    def _note_loss(self, _: object) -> None:
        """Let the handle die; of a write that is under way, only if it has no more to say."""
        if self._last is not None and not self._last.done():
            self._last.add_done_callback(self._note_loss)
        else:
            self._handle.die(JournalUnknownError("the connection to PostgreSQL was lost"))


def _unknown(error: BaseException) -> JournalUnknownError:
    if isinstance(error, JournalUnknownError):
        return error
    return JournalUnknownError(f"{type(error).__name__}: {error}")


def _retrieve(task: asyncio.Task[T]) -> None:
    """Look at what a write has ended with, in case its caller does not wait any more."""
    if not task.cancelled():
        task.exception()
