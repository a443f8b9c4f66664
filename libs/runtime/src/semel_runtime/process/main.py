"""A service as a process: settings, log and telemetry, and then its life until it is stopped."""

import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TypeVar

import structlog
import uvloop
from pydantic import ValidationError

from semel_common.allocator import keep_freed_memory
from semel_common.errors import SemelError
from semel_common.telemetry.span_export import Telemetry, open_telemetry
from semel_runtime.app import App, Environment
from semel_runtime.config import ServiceSettings, telemetry_environment
from semel_runtime.journal import JournalError
from semel_runtime.logs.log_setup import configure_logging, log_of_telemetry, take_standard_error
from semel_runtime.process.garbage_collection import collect_garbage_seldom
from semel_runtime.process.interruption import (
    StoppedWhileLoadingError,
    interrupted_by,
    stop_on_signals,
)
from semel_runtime.process.open_service import open_service
from semel_runtime.process.process_end import EXIT_FAILURE, end_by_force
from semel_runtime.process.run_service import run_service
from semel_runtime.setting_meanings import describe_fields

log = structlog.get_logger(__name__)

EXIT_USAGE = 2

S = TypeVar("S", bound=ServiceSettings)


def main(name: str, settings_class: type[S], build: Callable[[S, Environment], App]) -> None:
    """Run a service until SIGTERM, SIGINT or SIGHUP, then exit with its status.

    0: stopped in order, or before its journal was loaded. 1: it could not start, or its journal
    failed. 2: wrong settings.
    """
    output = take_standard_error()
    settings = _read_settings(name, settings_class)
    configure_logging(settings, name, output)
    telemetry = _telemetry(name, settings)
    sys.exit(uvloop.run(serve(name, settings, build, telemetry, on_failure=end_by_force)))


def _read_settings(name: str, settings_class: type[S]) -> S:
    if any(argument.startswith(("-h", "--h")) for argument in sys.argv[1:]):
        describe_fields(settings_class)
    try:
        return settings_class(_cli_parse_args=sys.argv[1:], _cli_prog_name=name)  # type: ignore[call-arg]  # pydantic-settings' own arguments
    except ValidationError as error:
        for problem in error.errors():
            option = ".".join(str(part) for part in problem["loc"]) or "settings"
            message = problem["msg"].removeprefix("Value error, ")  # Pydantic's word for ours.
            sys.stderr.write(f"{name}: {option}: {message}\n")
        sys.exit(EXIT_USAGE)


def _telemetry(name: str, settings: ServiceSettings) -> Telemetry | None:
    try:
        telemetry = open_telemetry(
            telemetry_environment(), name, service_instance_id=f"{name}-{settings.instance_id}"
        )
    except ValueError as problem:
        sys.stderr.write(f"{name}: {problem}\n")
        sys.exit(EXIT_USAGE)
    if telemetry is not None:
        log_of_telemetry()
    return telemetry


async def serve(
    name: str,
    settings: S,
    build: Callable[[S, Environment], App],
    telemetry: Telemetry | None,
    *,
    on_failure: Callable[[], None] = lambda: None,
) -> int:
    """Open a service and run it until a signal or a failure; returns the status of the process."""
    stop = stop_on_signals()
    collect_garbage_seldom()
    keep_freed_memory()
    try:
        async with AsyncExitStack() as stack:
            try:
                async with interrupted_by(stop):
                    opened = await open_service(name, settings, build, telemetry, stack)
            except StoppedWhileLoadingError:
                log.info("service stops before it was loaded")
                return 0
            return await run_service(opened, settings, stop, on_failure)
    except (JournalError, SemelError, OSError) as error:
        log.error("service cannot run", error=str(error))  # noqa: TRY400 - the sentence says what to do
        return EXIT_FAILURE
    except Exception:
        log.exception("service failed")
        return EXIT_FAILURE
