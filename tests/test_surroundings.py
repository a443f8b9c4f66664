"""The surroundings of tests: nothing of the caller is left."""

import asyncio
import gc
import logging
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import grpc
import pytest
import structlog
from surroundings import own_log_configuration, use_own_environment, use_own_ports

from semel_local import ports

POISON = {
    "http_proxy": "http://127.0.0.1:1", "GRPC_PROXY": "http://127.0.0.1:1", "no_proxy": "",
    "PYTHONUNBUFFERED": "1", "PYTHONOPTIMIZE": "2", "SEMEL_BOOTSTRAP": "127.0.0.1:1",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "PGHOST": "127.0.0.1",
    "XDG_STATE_HOME": "/nowhere", "LC_ALL": "tr_TR.UTF-8", "COLUMNS": "20", "FORCE_COLOR": "1",
}  # fmt: skip

CHILD = """
import signal, subprocess, sys
import pytest
from surroundings import use_own_signals

use_own_signals()
show = "import signal; print([signal.getsignal(n) for n in (1, 2, 3, 15)])"
subprocess.run([sys.executable, "-c", show], check=True)
"""
"""Changes its signals as a run of tests does, and shows those of a process that it starts."""


def test_nothing_that_the_caller_has_set_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surroundings.proxies", {})
    environment = {**POISON, "PATH": "/bin", "HOME": "/caller"}
    use_own_environment(environment, Path("/empty"))
    assert environment == {
        "PATH": "/bin",
        "HOME": "/empty",
        "LANG": "C.UTF-8",
        "GRPC_ENABLE_FORK_SUPPORT": "0",
        "UV_CACHE_DIR": "/caller/.cache/uv",
    }


def test_this_run_has_an_empty_home_that_no_other_user_may_read() -> None:
    home = Path.home()
    assert home.stat().st_mode & 0o077 == 0
    assert home.name.startswith("semel-tests-home-")
    assert not POISON.keys() & os.environ.keys()


def test_workers_side_by_side_choose_among_different_ports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen: list[range] = []
    for worker in ("gw0", "gw1", "gw2"):
        monkeypatch.setattr(ports, "choice", range(20_000, 32_768))
        use_own_ports(worker, 3)
        chosen.append(ports.choice)
    assert chosen == [range(20_000, 24_256), range(24_256, 28_512), range(28_512, 32_768)]
    assert all(ports.port_range().start in ports.choice for _ in range(100))


def test_processes_of_tests_do_not_ignore_what_their_caller_ignores() -> None:
    ignoring = "trap '' HUP INT QUIT TERM; exec \"$@\""
    shown = subprocess.run(
        ["/bin/sh", "-c", ignoring, "sh", sys.executable, "-c", CHILD],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parent,
    )  # fmt: skip
    default = "<Handlers.SIG_DFL: 0>"
    interrupt = "<built-in function default_int_handler>"
    assert shown.stdout.strip() == f"[{default}, {interrupt}, {default}, {default}]"


def test_call_that_outlives_the_loop_of_its_test_is_not_logged_in_the_next_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outlived: list[grpc.aio.Channel] = []

    async def call(deadline_s: float) -> None:
        channel = grpc.aio.insecure_channel(address)
        outlived.append(channel)
        unary: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/a/call")
        with pytest.raises(grpc.aio.AioRpcError, match="Deadline"):
            await unary(b"", timeout=deadline_s)

    with socket.create_server(("127.0.0.1", 0)) as silent, asyncio.Runner() as next_test:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with asyncio.Runner() as earlier_test:
            begun = earlier_test.get_loop().create_task(call(0.2))
            earlier_test.run(asyncio.sleep(0))
            begun.cancel()
        next_test.run(call(0.4))
        logging.getLogger("asyncio").error("an error of this test")
    assert caplog.messages == ["an error of this test"]


def test_error_that_garbage_complains_of_is_named_without_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail() -> None:
        raise ValueError("lost")

    async def lose() -> None:
        await asyncio.wait([asyncio.create_task(fail(), name="left behind")])

    asyncio.run(lose())
    gc.collect()
    (record,) = caplog.records
    assert "'left behind'" in record.message
    assert "ValueError('lost')" in record.message
    assert record.exc_info is None


def test_log_is_configured_after_a_test_as_it_was_before() -> None:
    structlog.reset_defaults()
    with own_log_configuration(), structlog.testing.capture_logs():
        pass
    assert not structlog.is_configured()
    factory = structlog.stdlib.LoggerFactory()
    structlog.configure(logger_factory=factory)
    with own_log_configuration():
        structlog.reset_defaults()
    assert structlog.get_config()["logger_factory"] is factory


def test_log_of_a_test_has_no_lines_of_clients_of_spark(caplog: pytest.LogCaptureFixture) -> None:
    for name in (f"semel-{os.getpid()}", "of this test"):
        thread = threading.Thread(target=logging.getLogger().error, args=(name,), name=name)
        thread.start()
        thread.join()
    assert caplog.messages == ["of this test"]
