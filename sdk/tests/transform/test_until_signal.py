"""What a signal ends, inside of one process."""

import asyncio
import signal
from collections.abc import Iterator

import pytest

from aiosemel._transform.stop_on_signal import run_until_signal
from semel_runtime.testing.default_signals import default_signals

LOGGER = "aiosemel._transform.stop_on_signal"


@pytest.fixture(autouse=True)
def _default_signals() -> Iterator[None]:
    with default_signals():
        yield


async def test_a_signal_within_a_call_waits_with_its_log_for_the_end_of_the_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The call may be a write to the same stream, which takes no second one in the middle."""
    caplog.set_level("INFO", LOGGER)
    stopped = asyncio.Event()

    async def run() -> None:
        signal.raise_signal(signal.SIGTERM)
        assert caplog.messages == []
        await stopped.wait()

    def stop() -> float:
        stopped.set()
        return 60_000

    await run_until_signal(run(), stop)
    assert caplog.messages == ["SIGTERM: ending"]


async def test_one_signal_ends_all_that_runs() -> None:
    stopped = 0

    def stop() -> float:
        nonlocal stopped
        stopped += 1
        return 0

    async def wait() -> None:
        await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(run_until_signal(wait(), stop))
        await asyncio.sleep(0)
        signal.raise_signal(signal.SIGTERM)
    assert stopped == 3
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


async def test_a_handler_that_the_program_sets_meanwhile_stays() -> None:
    async def run() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    await run_until_signal(run(), lambda: 0)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
