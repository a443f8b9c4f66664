"""One process of the application: a fork of a process that has imported everything."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import psutil

from database_chaos.application import Message, Start, main
from database_chaos.books import DifferenceError

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["database_chaos.application"])
_TESTS = Path(__file__).resolve().parents[1]
_POLL_S = 0.01
_STOP_S = 60.0


@contextmanager
def importable() -> Iterator[None]:
    """Let new processes find the modules of tests."""
    path = f"{_TESTS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    with patch.dict(os.environ, {"PYTHONPATH": path}):
        yield


class Victim:
    """A process that runs from its making on."""

    def __init__(self, start: Start) -> None:
        self._name = start.name
        self._pipe, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=main, args=(start, theirs), name=start.name)
        with importable():
            self._process.start()
        theirs.close()

    @property
    def was_killed(self) -> bool:
        """Whether it is dead. Raises DifferenceError if it has ended otherwise."""
        status = self._process.exitcode
        if status is None:
            return False
        if status != -signal.SIGKILL:
            raise DifferenceError(f"the process of {self._name} has ended with status {status}")
        return True

    @property
    def stands_still(self) -> bool:
        """Whether SIGSTOP has come to it."""
        return psutil.Process(self._process.pid).status() == psutil.STATUS_STOPPED

    def tell(self, message: Message) -> None:
        """Send it a message; a process that is dead hears nothing."""
        with suppress(OSError):  # It has died; ``was_killed`` says so soon.
            self._pipe.send(message)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self._process.pid is not None and self._process.exitcode is None:
            os.kill(self._process.pid, number)

    async def stop(self) -> bool:
        """Let it end in order; returns False if it was killed. Raises DifferenceError otherwise."""
        self.tell(None)
        try:
            async with asyncio.timeout(_STOP_S):
                while self._process.exitcode is None:  # noqa: ASYNC110 - of another process
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise DifferenceError(f"the process of {self._name} does not stop") from None
        return self._process.exitcode == 0 or not self.was_killed

    def end(self) -> None:
        """Kill it, if it is there, and give its resources back."""
        if self._process.exitcode is None:
            self._process.kill()
        self._process.join()
        self._process.close()
        self._pipe.close()
