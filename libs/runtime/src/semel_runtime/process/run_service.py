"""The run of an opened service: it serves until a signal or a failure, and ends in order."""

import asyncio
from collections.abc import Callable

import structlog

from semel_runtime.app import App
from semel_runtime.config import ServiceSettings
from semel_runtime.process.open_service import OpenedService
from semel_runtime.process.process_end import EXIT_FAILURE, refuse_if_told, report
from semel_runtime.server.grpc_server import GrpcServer

log = structlog.get_logger(__name__)


async def run_service(
    opened: OpenedService,
    settings: ServiceSettings,
    stop: asyncio.Event,
    on_failure: Callable[[], None] = lambda: None,
) -> int:
    """Serve until the event is set or the service fails; returns the status of the process.

    A failed service stops serving before it logs why.
    """
    app, server, journal = opened
    await server.start(app.handlers)
    background = asyncio.create_task(app.run(), name="background")
    ready = asyncio.create_task(_announce(app, server), name="announce")
    ends = {
        background,
        asyncio.create_task(stop.wait(), name="wait for signal"),
        asyncio.create_task(app.failed.wait(), name="wait for failure"),
    }
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    failed = app.failed.is_set() or background.done()
    if failed:  # A service on an older copy of its volume answers nothing more, either.
        on_failure()
        await server.abort()
        log.info("service stops", failed=True)
    else:
        log.info("service stops", failed=False)
        await server.stop(
            drain_ms=settings.shutdown_drain_ms,
            grace_ms=settings.shutdown_grace_ms,
            answer_parked=app.drain,
        )
    for task in (*ends, ready):
        task.cancel()
    results = await asyncio.gather(*ends, ready, return_exceptions=True)
    try:
        await refuse_if_told(results, settings, journal)
    finally:
        report(results)
    return EXIT_FAILURE if failed else 0


async def _announce(app: App, server: GrpcServer) -> None:
    await app.ready.wait()
    await server.set_serving()
    log.info("service ready")
