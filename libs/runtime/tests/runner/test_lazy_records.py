"""Records without a waiter: no append of their own, never shown before they are durable."""

import asyncio

import pytest
from runner_harness import Counted, Service, begin, settle, start

from semel_common.errors import KafkaStorageError
from semel_runtime.runner import RunnerOptions


async def test_a_record_without_a_waiter_gets_no_append_of_its_own() -> None:
    service = await start(options=RunnerOptions(linger_ms=60_000))
    service.runner.run_lazily(lambda: service.machine.add("a"))
    await settle()
    assert service.runner.stats().commits == 0

    assert await service.add("b") == 1

    stats = service.runner.stats()
    assert (stats.commits, stats.records) == (1, 2)
    await service.runner.close()


@pytest.mark.parametrize("reads", [True, False], ids=["a read", "closing"])
async def test_a_reader_of_a_lazy_record_makes_it_durable(service: Service, *, reads: bool) -> None:
    service.runner.run_lazily(lambda: service.machine.add("a"))

    if reads:
        assert await service.read("a") == 1
    else:
        await service.runner.close()

    assert service.durable == [Counted("a", 1)]


async def test_a_record_without_a_waiter_becomes_durable_after_a_while() -> None:
    service = await start(options=RunnerOptions(linger_ms=0))
    durable = asyncio.Event()
    service.runner.on_durable(lambda _: durable.set())

    service.runner.run_lazily(lambda: service.machine.add("a"))
    await durable.wait()

    assert service.durable == [Counted("a", 1)]
    await service.runner.close()


async def test_a_record_without_a_waiter_queues_behind_the_commit_in_flight(
    service: Service,
) -> None:
    service.volume.hold()
    add = await begin(service.add("a"))
    service.runner.run_lazily(lambda: service.machine.add("b"))

    service.volume.sync()
    assert await add == 1
    await settle()

    assert service.durable == [Counted("a", 1)]
    service.volume.release()
    assert await service.read("b") == 1


async def test_a_record_without_a_waiter_is_refused_after_the_end(service: Service) -> None:
    await service.runner.close()

    with pytest.raises(KafkaStorageError):
        service.runner.run_lazily(lambda: service.machine.add("a"))
