"""The surroundings of a test run: the environment and the signals of its caller change no test.

Tests and the processes that they start see a home of their own, none of the variables that steer
Python, proxies, Semel, telemetry, PostgreSQL or a terminal, and the signals of a new session.
"""

import gc
import logging
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType

import structlog

from semel_local import ports

_FORGOTTEN = (
    "*_PROXY", "PYTHON*", "SEMEL_*", "OTEL_*", "GRPC_*", "PG*", "XDG_*", "LC_*", "LANGUAGE", "TZ",
    "COLUMNS", "LINES", "TERM", "NO_COLOR", "FORCE_COLOR", "CLICOLOR*", "SSLKEYLOGFILE",
)  # fmt: skip
"""The variables, of any case, that a test must not see."""

proxies: dict[str, str] = {}
"""The caller's, for the tests that download packages."""

_RESTORED_BY_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}
"""Python ignores these, and gives child processes the default."""

_HANDLERS: Mapping[int, "Callable[[int, FrameType | None], object] | signal.Handlers"] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGCHLD: signal.SIG_DFL,
}
"""In this process, for signals that do more than to end it."""


def use_own_environment(environment: MutableMapping[str, str], home: Path) -> None:
    """Clear the caller's environment variables, and move into an empty home."""
    caches = environment.get("XDG_CACHE_HOME") or f"{environment.get('HOME', home)}/.cache"
    for name in list(environment):
        if any(fnmatchcase(name.upper(), pattern) for pattern in _FORGOTTEN):
            value = environment.pop(name)
            if name.upper().endswith("_PROXY"):
                proxies[name] = value
    environment.setdefault("UV_CACHE_DIR", f"{caches}/uv")  # Builds need no network with this.
    # The Makefile says why.
    environment.update(HOME=str(home), LANG="C.UTF-8", GRPC_ENABLE_FORK_SUPPORT="0")


def use_own_ports(worker: str, workers: int) -> None:
    """Let clusters of this process take ports that clusters of other workers do not take.

    ``worker`` is xdist's name of this process, such as gw0. A process that xdist did not start has
    no name, and takes any port.
    """
    if worker:
        number, part = int(worker.removeprefix("gw")), len(ports.choice) // workers
        ports.choice = ports.choice[number * part : (number + 1) * part]


def use_own_signals() -> None:
    """Stop ignoring signals: child processes inherit what ``nohup`` and background jobs ignore.

    A handler of this process ends with an exec. So the run itself still outlives a hang-up.
    """
    for number in signal.valid_signals() - _RESTORED_BY_PYTHON:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _HANDLERS.get(number, _ignore))


def leave_out_earlier_loops(record: logging.LogRecord) -> bool:
    """Filter the log of asyncio: gRPC logs an event of a closed loop in whichever loop runs next.

    On a busy machine, the last event of a call comes when the loop of its test is closed.
    """
    error = record.exc_info and record.exc_info[1]
    of_queue = "PollerCompletionQueue._handle_events" in record.getMessage()
    return not (of_queue and str(error) == "Event loop is closed")


def leave_out_tracebacks_of_garbage(record: logging.LogRecord) -> bool:
    """Filter the log of asyncio: name the error of a lost task, without its traceback.

    The collector of garbage finds the task in the middle of any work. If that is `ast.parse`,
    Python 3.11.7 fails in it once a traceback is formatted, which parses source as well
    (https://github.com/python/cpython/issues/106905).
    """
    if "exception was never retrieved" in record.getMessage():
        record.exc_info = None
    return True


def leave_out_clients_of_spark(record: logging.LogRecord) -> bool:
    """Filter a log: clients of Spark's tests miss their clusters, in a thread that never ends.

    `pyspark_semel.connection` names the thread.
    """
    return record.threadName != f"semel-{record.process}"


@contextmanager
def own_log_configuration() -> Iterator[None]:
    """Put structlog's configuration back at the end of the block.

    `structlog.testing.capture_logs` leaves a configuration where there was none, and the services
    of a later `LocalCluster` then print their log to the standard output of its test.
    """
    before = structlog.get_config() if structlog.is_configured() else None
    try:
        yield
    finally:
        structlog.reset_defaults()
        if before is not None:
            structlog.configure(**before)


def collect_quietly() -> None:
    """Free the objects to which nothing refers, and ignore what they complain of."""
    complain, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()
    finally:
        sys.unraisablehook = complain


def _ignore(_: int, __: FrameType | None) -> None:
    """Do nothing."""
