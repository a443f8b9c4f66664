"""A process keeps its transaction alive, as long as a process may still end it."""

import asyncio

from aiosemel import JointHandle
from pyspark_semel.sink.keep_alive_watch import KeepAliveWatch

HANDLE = JointHandle(
    transactional_id="sink", txn_version=0, owner="q", run="r", transaction_timeout_ms=10_000
)


class FakeJoint:
    """Implements ``Joint``; notes for how long it was kept alive."""

    def __init__(self) -> None:
        self.handle = HANDLE
        self.over = asyncio.Event()
        self.ended_s: float | None = None
        self.is_closed = False

    async def keep_alive(self) -> None:
        try:
            await self.over.wait()
        finally:
            self.ended_s = asyncio.get_running_loop().time()

    async def close(self) -> None:
        self.is_closed = True


async def started(joint: FakeJoint, tasks: int = 1) -> tuple[KeepAliveWatch, asyncio.Task[None]]:
    keep_alive = KeepAliveWatch(joint)
    for _ in range(tasks):
        keep_alive.begin()
    return keep_alive, asyncio.create_task(keep_alive.run())


async def passed(seconds: float) -> None:
    """Let virtual time pass."""
    moment = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(seconds, moment.set_result, None)
    await moment


async def test_it_lasts_as_long_as_a_task_writes() -> None:
    joint = FakeJoint()
    _, watching = await started(joint)
    await passed(1_000)
    assert joint.ended_s is None
    joint.over.set()
    await watching
    assert joint.is_closed


async def test_it_outlasts_the_tasks_that_have_finished_but_not_for_ever() -> None:
    joint = FakeJoint()
    keep_alive, watching = await started(joint, tasks=2)
    await passed(1)
    await keep_alive.end(finished=True)
    await passed(100)
    await keep_alive.end(finished=False)
    await watching
    assert joint.ended_s == 1 + 100 + 50


async def test_a_task_that_comes_later_goes_on_with_it() -> None:
    joint = FakeJoint()
    keep_alive, watching = await started(joint)
    await passed(1)
    await keep_alive.end(finished=True)
    await passed(49)
    keep_alive.begin()
    await passed(100)
    assert joint.ended_s is None
    await keep_alive.end(finished=False)
    await watching
    assert joint.ended_s == 150 + 50


async def test_it_ends_when_all_tasks_have_failed() -> None:
    joint = FakeJoint()
    keep_alive, watching = await started(joint)
    await passed(3)
    await keep_alive.end(finished=False)
    await watching
    assert joint.ended_s == 3
    assert keep_alive.is_over


async def test_a_transaction_that_is_over_before_its_tasks_is_no_error() -> None:
    joint = FakeJoint()
    keep_alive, watching = await started(joint, tasks=2)
    joint.over.set()
    await watching
    assert keep_alive.is_over
    await keep_alive.end(finished=True)
    await keep_alive.end(finished=False)


async def test_it_is_kept_once_for_all_tasks() -> None:
    joint = FakeJoint()
    keep_alive, watching = await started(joint, tasks=2)
    await passed(1)
    await keep_alive.run()
    assert joint.ended_s is None
    joint.over.set()
    await watching
