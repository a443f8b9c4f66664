"""The end of a service process: what it says of it, and how often."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, Self

import pytest
import structlog

from semel_common.errors import InconsistentClusterIdError, KafkaStorageError
from semel_runtime.config import ServiceSettings
from semel_runtime.journal import JournalOpenError
from semel_runtime.journal_refusal import check_journal_not_refused, refuse_journal
from semel_runtime.process import main
from semel_runtime.process.main import serve
from semel_runtime.process.open_service import OpenedService
from semel_runtime.process.process_end import EXIT_FAILURE
from semel_runtime.process.run_service import run_service
from semel_runtime.server.calls import Handlers
from semel_runtime.server.grpc_server import GrpcServer
from semel_runtime.testing.default_signals import default_signals
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.volume import MemoryVolume


class Failing:
    """A service that fails at once: its journal, and so its work, or its work alone."""

    def __init__(self, error: Exception, *, journal_failed: bool) -> None:
        self.handlers = Handlers()
        self.ready = asyncio.Event()
        self.failed = asyncio.Event()
        self._error = error
        self._journal_failed = journal_failed

    async def run(self) -> None:
        """Fail."""
        if self._journal_failed:
            self.failed.set()
        raise ExceptionGroup("work", [self._error])

    def drain(self) -> None:
        """Do nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


async def ended(failing: Failing) -> list[str]:
    """Run until the end; returns the errors that were logged."""
    return [str(entry["event"]) for entry in await errors_of(failing)]


async def errors_of(failing: Failing) -> list[MutableMapping[str, Any]]:
    """Run until the end; returns the lines of errors."""
    settings = ServiceSettings(data_dir=Path("unused"))
    with structlog.testing.capture_logs() as logs:
        server = GrpcServer(settings.server_limits())
        journal = MemoryJournal(MemoryVolume())
        status = await run_service(
            OpenedService(failing, server, journal), settings, asyncio.Event()
        )
    assert status == EXIT_FAILURE
    return [entry for entry in logs if entry["log_level"] == "error"]


async def test_what_background_work_failed_of_is_logged() -> None:
    assert await ended(Failing(ValueError("x"), journal_failed=False)) == ["background work failed"]


@pytest.mark.parametrize(
    ("error", "traced"),
    [(ValueError("x"), True), (InconsistentClusterIdError("give it a journal of its own"), False)],
)
async def test_a_fault_for_an_operator_is_logged_without_a_traceback(
    error: Exception, traced: bool
) -> None:
    (line,) = await errors_of(Failing(error, journal_failed=False))
    assert line["error"] == str(error)
    assert bool(line["exc_info"]) is traced


async def test_a_journal_that_fails_is_not_logged_again_by_all_who_use_it() -> None:
    """The runner has said it already, in one line."""
    failing = Failing(KafkaStorageError("journal failed"), journal_failed=True)
    assert await ended(failing) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_service_that_is_to_stop_while_it_loads_stops_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """As while it waits for a database, which may take a minute."""
    for setting_of_the_process in ("collect_garbage_seldom", "keep_freed_memory"):
        monkeypatch.setattr(main, setting_of_the_process, lambda: None)
    settings = ServiceSettings(data_dir=tmp_path, listeners="default://127.0.0.1:0")
    loading = Loading(number)
    with structlog.testing.capture_logs() as logs, default_signals():
        async with asyncio.timeout(50):
            assert await serve("semel-test", settings, lambda _, __: loading, None) == 0
    assert loading.was_cancelled
    assert [entry["log_level"] for entry in logs] == ["info"]


class Loading:
    """A service that is told to stop while it loads, which takes for ever."""

    def __init__(self, number: signal.Signals) -> None:
        self._number = number
        self.handlers = Handlers()
        self.ready = asyncio.Event()
        self.failed = asyncio.Event()
        self.was_cancelled = False

    async def run(self) -> None:
        """Never be reached."""
        raise AssertionError

    def drain(self) -> None:
        """Do nothing."""

    async def __aenter__(self) -> Self:
        os.kill(os.getpid(), self._number)
        try:
            await asyncio.Event().wait()
        finally:
            self.was_cancelled = True
        raise AssertionError

    async def __aexit__(self, *_: object) -> None:
        pass


async def test_a_journal_without_a_folder_that_was_refused_stays_refused() -> None:
    volume = MemoryVolume()
    journal = MemoryJournal(volume)
    await journal.claim("token")
    check_journal_not_refused(journal)

    await refuse_journal(journal, "it is old")

    with pytest.raises(JournalOpenError, match="This journal was refused: it is old"):
        check_journal_not_refused(MemoryJournal(volume))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:secret@[::1/database",
        "mysql://user:secret@host/database",
        "postgresql://user:secret@nowhere.invalid/database",
        "postgresql://user:secret@127.0.0.1:1/database",
        "postgresql://user:secret@127.0.0.1:1/",
        "postgresql://user:sec/ret@127.0.0.1:1/database",
    ],
)
async def test_a_broken_address_of_a_journal_is_one_sentence_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    for setting_of_the_process in ("collect_garbage_seldom", "keep_freed_memory"):
        monkeypatch.setattr(main, setting_of_the_process, lambda: None)
    settings = ServiceSettings(data_dir=tmp_path, journal_url=url, journal_open_timeout_ms=0)
    with structlog.testing.capture_logs() as logs:
        loading = Loading(signal.SIGTERM)
        status = await serve("semel-test", settings, lambda _, __: loading, None)
    assert status == EXIT_FAILURE
    (line,) = (entry for entry in logs if entry["log_level"] == "error")
    assert set(line) == {"event", "error", "log_level"}, "it has a traceback"
    assert line["error"].endswith(".")
    assert "sec" not in line["error"]


def test_a_failed_process_ends_though_a_thread_of_it_hangs() -> None:
    """As one that writes to a disk that does not answer, which Python would wait for."""
    program = (
        "import threading\n"
        "from semel_runtime.process.process_end import end_by_force\n"
        "end_by_force(0.1)\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
    )
    done = subprocess.run((sys.executable, "-c", program), check=False, timeout=30)
    assert done.returncode == EXIT_FAILURE
