"""Where a client lives: the process and the event loop that opened it.

Its tasks run nowhere else, and gRPC does not survive a fork: a call from elsewhere would wait for
ever, or end the process. So each public call asks ``Home.check`` first: one comparison.
"""

import asyncio
import os

from aiosemel.errors import IllegalStateError

_ADVICE = (
    'start processes with multiprocessing.get_context("spawn"), or fork before the first client'
    " is opened"
)
running_loop = asyncio._get_running_loop  # noqa: SLF001 - it returns None, and costs a third
"""Returns the running event loop, if there is one: calls that wait for nothing need none."""
_forks = 0
_opened_in: int | None = None


class Home:
    """The home of one client."""

    def __init__(self) -> None:
        """Belong to this process, and to no event loop yet."""
        self._forks = _forks
        self._process_id = os.getpid()
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop of the client; None before it is open."""

    def move_in(self, *, uses_grpc: bool) -> None:
        """Take the running event loop. Raises IllegalStateError in a fork that cannot use gRPC."""
        self._check_process()
        if uses_grpc:
            _open_in_this_process()
        self.loop = asyncio.get_running_loop()

    def check(self) -> None:
        """Raise IllegalStateError in another process, and in another event loop."""
        if running_loop() is not self.loop:  # A fork runs none, or one of its own.
            self._check_process()
            self._check_loop()

    def _check_process(self) -> None:
        if self._forks != _forks:
            raise IllegalStateError(
                f"the client belongs to process {self._process_id}; process {os.getpid()} is a"
                f" fork of it, and gRPC does not survive a fork: {_ADVICE}"
            )

    def _check_loop(self) -> None:
        if self.loop is not None and running_loop() is not None:
            raise IllegalStateError(
                "the client was opened in another event loop: use it in that one alone, and open"
                " a client in each event loop"
            )


def _open_in_this_process() -> None:
    global _opened_in  # noqa: PLW0603 - gRPC's state is the process's
    process_id = os.getpid()
    if _opened_in is not None and _opened_in != process_id:
        raise IllegalStateError(
            f"process {process_id} is a fork of process {_opened_in}, which has opened a client,"
            f" and gRPC does not survive a fork: {_ADVICE}"
        )
    _opened_in = process_id


def _note_fork() -> None:
    global _forks  # noqa: PLW0603 - one fork concerns all clients
    _forks += 1


os.register_at_fork(after_in_child=_note_fork)
