"""Records of a patient caller: they share the next append, and wait a bounded time for one."""

import asyncio

from msgspec import structs
from runner_harness import Counted, Service, begin, settle, start

from semel_runtime.machine import Result
from semel_runtime.runner import RunnerOptions
from semel_runtime.testing.virtual_time import after, in_virtual_time


def patient(service: Service, name: str) -> Result[int, Counted]:
    return structs.replace(service.machine.add(name), patient=True)


async def test_a_handler_with_time_rides_in_the_append_of_another() -> None:
    service = await start(options=RunnerOptions(patience_ms=60_000))
    waiting = await begin(service.run(lambda: patient(service, "a")))
    assert not waiting.done()

    assert await service.add("b") == 1
    assert await waiting == 1

    stats = service.runner.stats()
    assert (stats.commits, stats.records) == (1, 2)
    await service.runner.close()


async def test_a_caller_that_is_shown_a_record_makes_it_durable() -> None:
    service = await start(options=RunnerOptions(patience_ms=60_000))
    waiting = await begin(service.run(lambda: patient(service, "a")))

    assert await service.read("a") == 1

    assert service.durable == [Counted("a", 1)]
    assert await waiting == 1
    await service.runner.close()


@in_virtual_time
async def test_no_caller_waits_longer_than_that() -> None:
    options = RunnerOptions(patience_ms=2, linger_ms=20)
    service = await start(options=options)
    service.runner.run_lazily(lambda: service.machine.add("a"))
    waiting = asyncio.create_task(service.run(lambda: patient(service, "b")))

    await after(1)
    assert not waiting.done()
    await after(2)
    assert waiting.done()

    assert service.durable == [Counted("a", 1), Counted("b", 1)]
    await service.runner.close()


async def test_a_repeat_waits_for_the_append_in_flight_and_asks_for_none(service: Service) -> None:
    service.volume.hold()
    add = await begin(service.add("a"))
    nothing: Result[int, Counted] = Result(0, patient=True)
    waiting = await begin(service.run(lambda: nothing))
    assert not waiting.done()

    service.volume.sync()
    await settle()

    assert (await add, await waiting) == (1, 0)
    assert service.runner.stats().commits == 1
