"""Code that does not await uses a client in a loop of another thread."""

import asyncio
import gc
import sys
import threading
from collections.abc import Iterator
from types import ModuleType

import pytest

from aiosemel.errors import InvalidConfigError
from pyspark_semel.connection import Connection, connect

NOBODY = "127.0.0.1:1"


@pytest.fixture(scope="module")
def connection() -> Connection:
    return connect(NOBODY, api_timeout_ms=60_000)


class Steps:
    """Hands out pieces, and says how many were asked for."""

    def __init__(self, pieces: list[str]) -> None:
        self._pieces: Iterator[str] = iter(pieces)
        self.begun = threading.Semaphore(0)
        self.cancelled = threading.Event()

    async def next(self) -> str:
        self.begun.release()
        return next(self._pieces, "")

    async def hang(self) -> str:
        self.begun.release()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        return ""


def test_a_process_has_one_connection_to_a_cluster(connection: Connection) -> None:
    assert connect(NOBODY, api_timeout_ms=60_000) is connection
    assert connect("127.0.0.1:2", api_timeout_ms=60_000) is not connection


def test_what_was_imported_since_the_last_task_is_left_out_of_collections_of_garbage(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.unfreeze()
    assert len(gc.get_objects()) > 10_000
    monkeypatch.setitem(sys.modules, "imported_by_a_task", ModuleType("imported_by_a_task"))
    assert connect(NOBODY, api_timeout_ms=60_000) is connection
    assert len(gc.get_objects()) < 1_000


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match="'nowhere' is not host:port"):
        connect("nowhere", api_timeout_ms=60_000)


def test_what_a_coroutine_returns_or_raises_reaches_the_caller(connection: Connection) -> None:
    async def double(number: int) -> int:
        if number < 0:
            raise ValueError(number)
        return 2 * number

    assert connection.call(double(4)) == 8
    with pytest.raises(ValueError, match="-1"):
        connection.call(double(-1))


def test_the_next_step_is_begun_before_the_last_is_used(connection: Connection) -> None:
    steps = Steps(["a", "b", "c"])
    pieces = connection.ahead(steps.next)
    assert next(pieces) == "a"
    for _ in range(2):
        assert steps.begun.acquire(timeout=60)
    assert list(pieces) == ["b", "c"]


def test_a_caller_that_stops_early_cancels_the_step_under_way(connection: Connection) -> None:
    steps = Steps(["a"])
    coroutines = iter([steps.next(), steps.hang()])
    pieces = connection.ahead(lambda: next(coroutines))
    assert next(pieces) == "a"
    for _ in range(2):
        assert steps.begun.acquire(timeout=60)
    pieces.close()  # type: ignore[attr-defined]  # it is a generator
    assert steps.cancelled.wait(10)
