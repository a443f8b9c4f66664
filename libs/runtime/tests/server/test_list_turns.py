"""Lists of an instance: one at a time, and each caller has its turn."""

import asyncio
from contextlib import AsyncExitStack
from typing import Self

import pytest

from semel.group.v1 import group_pb2 as wire
from semel_common.wire.methods import DESCRIBE_GROUPS, LIST_GROUPS
from semel_runtime.authentication.principal import Origin, Principal
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.server.handler_call import answer
from semel_runtime.server.limits import list_turns
from semel_runtime.server.limits.list_turns import ListPauses, ListTurns


def origin_of(name: str) -> Origin:
    return Origin(listener="l", principal=Principal(name=name))


class Lists:
    """Callers that want turns, and the order in which they had them."""

    def __init__(self) -> None:
        self.turns = ListTurns()
        self.had: list[str] = []
        self._group = asyncio.TaskGroup()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        await self._stack.enter_async_context(self.turns.turn(origin_of("first")))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        await self._group.__aexit__(None, None, None)

    async def want(self, name: str) -> asyncio.Task[None]:
        """Ask for a turn, and return when the caller waits."""
        task = self._group.create_task(self._have(name))
        await asyncio.sleep(0)
        return task

    async def _have(self, name: str) -> None:
        async with self.turns.turn(origin_of(name)):
            self.had.append(name)
            await asyncio.sleep(0)


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Grows with each pause of a list."""
    pauses: list[None] = []

    async def pause() -> None:
        pauses.append(None)

    monkeypatch.setattr(list_turns, "pause", pause)
    return pauses


async def test_a_list_of_short_pieces_pauses_now_and_then(paused: list[None]) -> None:
    pauses = ListPauses(lambda: 0.0)
    for _ in range(3 * list_turns._PIECES_MAX):
        await pauses.after_piece()
    assert len(paused) == 3


async def test_a_list_pauses_after_each_piece_that_takes_long(paused: list[None]) -> None:
    now_s = 0.0
    pauses = ListPauses(lambda: now_s)
    for count in range(1, 4):
        now_s += list_turns._WORK_S
        await pauses.after_piece()
        assert len(paused) == count


async def test_callers_take_turns_however_many_lists_one_of_them_wants() -> None:
    async with Lists() as lists:
        for name in ("ada", "ada", "ada", "bob", "ada", "bob", "eve"):
            await lists.want(name)
        assert lists.had == []
    assert lists.had == ["ada", "bob", "eve", "ada", "bob", "ada", "ada"]


async def test_a_call_that_is_cancelled_while_it_waits_leaves_nothing() -> None:
    async with Lists() as lists:
        waiting = [await lists.want("ada") for _ in range(3)]
        waiting[0].cancel()
        waiting[1].cancel()
        await asyncio.wait(waiting[:2])
    assert lists.had == ["ada"]


async def test_a_call_that_is_cancelled_as_its_turn_comes_passes_it_on() -> None:
    turns = ListTurns()
    async with AsyncExitStack() as first:
        await first.enter_async_context(turns.turn(origin_of("ada")))

        async def want() -> None:
            async with turns.turn(origin_of("ada")):
                pass

        unlucky, lucky = asyncio.create_task(want()), asyncio.create_task(want())
        await asyncio.sleep(0)
        await first.aclose()
        unlucky.cancel()
        with pytest.raises(asyncio.CancelledError):
            await unlucky
        await lucky
    async with turns.turn(origin_of("bob")):
        pass


async def test_a_list_that_fails_passes_its_turn_on() -> None:
    turns = ListTurns()
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            async with turns.turn(origin_of("ada")):
                raise ValueError("no")


async def test_lists_are_read_one_at_a_time_and_other_calls_beside_them() -> None:
    running, most = 0, 0
    release = asyncio.Event()

    async def count(_request: object, _call: Call) -> wire.ListGroupsResponse:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await release.wait()
        running -= 1
        return wire.ListGroupsResponse()

    async def describe(_request: object, _call: Call) -> wire.DescribeGroupsResponse:
        return wire.DescribeGroupsResponse()

    handlers = Handlers()
    handlers.add(LIST_GROUPS, count, is_list=True)
    handlers.add(DESCRIBE_GROUPS, describe)
    lists, other = handlers
    call = Call(origin=origin_of("ada"))
    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(answer(lists, wire.ListGroupsRequest(), call))
        await asyncio.sleep(0)
        await answer(other, wire.DescribeGroupsRequest(), call)
        release.set()
    assert most == 1
