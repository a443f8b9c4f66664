"""Observers of a runner: a log, spans and figures that fail change nothing of its work."""

import asyncio

import pytest
import structlog
from opentelemetry.trace import NonRecordingSpan, NoOpTracer, Span, SpanContext, Tracer
from runner_harness import Counters, CounterSerde, Service, begin, settle, start

from semel_common.errors import KafkaStorageError
from semel_common.telemetry import trace_context
from semel_runtime.runner import CommitFigures, Runner, RunnerOptions, harmless
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.volume import MemoryVolume

CONTEXT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def disk_is_full(*_: object) -> structlog.typing.EventDict:
    raise OSError(28, "No space left on device")


@pytest.fixture
def log_raises() -> None:
    """Let each line of the log raise, as where its disk is full and nothing catches that."""
    structlog.configure(processors=[disk_is_full])


@pytest.mark.usefixtures("log_raises")
async def test_a_failure_wakes_all_who_wait_and_is_told_when_it_cannot_be_logged(
    service: Service,
) -> None:
    service.volume.hold()
    calls = [await begin(call) for call in (service.add("a"), service.read("a"))]
    service.volume.fail_next_write(applied=False)
    service.volume.sync()

    async with asyncio.timeout(50):
        await service.runner.failed.wait()
        for call in calls:
            with pytest.raises(KafkaStorageError):
                await call


@pytest.mark.usefixtures("log_raises")
async def test_a_replay_that_breaks_an_assumption_is_what_its_caller_is_told(
    service: Service,
) -> None:
    with pytest.raises(AssertionError, match="never negative"):
        await service.add("a", -1)
    assert isinstance(service.runner.failure, AssertionError)


@pytest.mark.usefixtures("log_raises")
async def test_snapshots_go_on_when_they_cannot_be_logged() -> None:
    service = await start(options=RunnerOptions(snapshot_records_min=4))
    for number in range(40):
        await service.add(str(number))
        await settle()
    assert service.runner.stats().snapshots > 1
    assert service.runner.failure is None
    await service.runner.close()


async def test_a_snapshot_that_cannot_be_made_is_the_end_and_not_the_last_one_in_silence() -> None:
    service = await start(options=RunnerOptions(snapshot_records_min=1))
    service.machine.snapshot = lambda: 1 // 0  # type: ignore[assignment, method-assign, return-value]
    await service.add("a")
    async with asyncio.timeout(50):
        await service.runner.failed.wait()
    assert isinstance(service.runner.failure, ZeroDivisionError)
    await service.runner.close()


async def test_figures_that_cannot_be_counted_are_logged_and_change_nothing(
    service: Service,
) -> None:
    def broken(_: CommitFigures) -> None:
        raise LookupError("no such series")

    counted: list[CommitFigures] = []
    service.runner.on_commit(broken)
    service.runner.on_commit(counted.append)
    with structlog.testing.capture_logs() as logs:
        assert [await service.add("a"), await service.add("a")] == [1, 2]
        await settle()
    assert len(counted) == 2
    assert service.runner.failure is None
    assert [entry["error"] for entry in logs] == ["LookupError('no such series')"]


class BrokenSpan(NonRecordingSpan):
    """A span whose processor fails at its end."""

    def end(self, end_time: int | None = None) -> None:
        """Fail."""
        raise LookupError(end_time)


class BrokenTracer(NoOpTracer):
    """Makes such spans, or none at all."""

    def __init__(self, *, makes_spans: bool) -> None:
        """Make none, unless told to."""
        self._makes_spans = makes_spans

    def start_span(self, *_: object, **__: object) -> Span:
        """Make one."""
        if not self._makes_spans:
            raise LookupError("no sampler")
        return BrokenSpan(_context())


def _context() -> SpanContext:
    context = trace_context.read(CONTEXT)
    assert context is not None
    return context


@pytest.mark.parametrize("makes_spans", [True, False])
async def test_spans_that_fail_change_nothing(*, makes_spans: bool) -> None:
    tracer: Tracer = BrokenTracer(makes_spans=makes_spans)
    machine = Counters()
    async with await Runner.open(
        MemoryJournal(MemoryVolume()), machine, CounterSerde(), tracer=tracer
    ) as runner:
        with trace_context.within((NonRecordingSpan(_context()),)):
            assert await runner.run(lambda: machine.add("a")) == 1
        await settle()
        assert runner.failure is None


async def test_a_close_that_is_cancelled_wakes_all_callers(service: Service) -> None:
    service.volume.hold()
    add = await begin(service.add("a"))
    close = await begin(service.runner.close())
    close.cancel()
    async with asyncio.timeout(50):
        with pytest.raises(KafkaStorageError, match="journal is closed"):
            await add


def test_a_harmless_listener_hears_everything_and_raises_nothing() -> None:
    heard: list[int] = []

    def listen(number: int) -> None:
        heard.append(number)
        raise LookupError

    listener = harmless(listen)
    for number in range(3):
        listener(number)
    assert heard == [0, 1, 2]
