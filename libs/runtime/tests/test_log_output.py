"""Lines of the log that cannot be written: dropped, counted, reported, and harmless."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from semel_runtime.logs.log_output import LogOutput, Losses

SERVICE = """
import sys
from pathlib import Path
import structlog
from semel_runtime.config import ServiceSettings
from semel_runtime.logs.log_setup import configure_logging, take_standard_error

output = take_standard_error()
configure_logging(ServiceSettings(data_dir=Path("x"), log_format="json"), "semel-test", output)
"""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for descriptor in (reader, writer):
        try:
            os.close(descriptor)
        except OSError:
            continue  # The test has closed it.


def test_lines_that_a_full_disk_refuses_are_counted_and_told_of_once() -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    output = LogOutput(descriptor)
    output.write("first\n")
    output.write("second\n")
    assert output.lost_total == 2
    assert output.take_losses() is None, "there is no way to tell of them yet"

    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    output.write("third\n")
    assert output.take_losses() == Losses(2, "OSError: [Errno 28] No space left on device")
    assert output.take_losses() is None
    os.close(descriptor)


def test_a_pipe_that_is_closed_raises_nothing(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    os.close(reader)
    output = LogOutput(writer)
    output.write("line\n")
    assert output.lost_total == 1


def test_a_pipe_that_is_not_read_does_not_hold_up_its_writer(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    output = LogOutput(writer)

    def write() -> None:
        while output.lost_total < 3:
            output.write("x" * 10_000 + "\n")

    writing = threading.Thread(target=write, daemon=True)
    writing.start()
    writing.join(20)
    assert not writing.is_alive()
    os.read(reader, 1 << 20)
    output.write("goes on\n")
    losses = output.take_losses()
    assert losses is not None
    assert losses.lines == 3


def test_a_descriptor_that_is_closed_raises_nothing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    os.close(writer)
    output = LogOutput(writer)
    output.write("line\n")
    assert output.lost_total == 1


def run(program: str, **streams: int) -> subprocess.CompletedProcess[bytes]:
    """Run a program that logs; standard error goes nowhere, unless told otherwise."""
    command = (sys.executable, "-c", SERVICE + program)
    return subprocess.run(command, check=False, timeout=30, **streams)  # type: ignore[call-overload, no-any-return]


def lines_of(program: str) -> list[dict[str, object]]:
    """Return the lines that a program logs."""
    done = run(program, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stderr.splitlines()]


@pytest.mark.parametrize("status", [0, 1, 2])
def test_a_full_disk_under_the_log_does_not_change_the_exit_status(status: int) -> None:
    """Python turns it into 120 where its own stream has bytes left that it cannot write."""
    with Path("/dev/full").open("wb") as full:
        program = (
            "structlog.get_logger().error('line')\n"
            "print('more', file=sys.stderr)\n"
            f"sys.exit({status})"
        )
        done = run(program, stderr=full.fileno(), stdout=full.fileno())
    assert done.returncode == status


def test_standard_streams_that_are_closed_are_given_to_no_other_file(tmp_path: Path) -> None:
    """A database would get the number of standard error, and the lines of the log with it."""
    found = tmp_path / "found"
    program = (
        SERVICE + "structlog.get_logger().error('line')\n"
        f"opened = open({str(tmp_path / 'database')!r}, 'w')\n"
        f"Path({str(found)!r}).write_text(str(opened.fileno()))"
    )
    command = ("sh", "-c", 'exec "$0" -c "$1" 0<&- 1>&- 2>&-', sys.executable, program)
    subprocess.run(command, check=True, timeout=30)
    assert int(found.read_text()) > 2
    assert (tmp_path / "database").read_text() == ""


def test_lines_of_the_standard_library_and_warnings_have_a_time_and_a_level() -> None:
    """Certificates that are loaded again are told of by the standard library's logging."""
    lines = lines_of(
        "import logging, warnings\n"
        "logging.getLogger('semel_common.reloaded_files').info('loaded again: %s', 'tls.crt')\n"
        "logging.getLogger('grpc').warning('of another library')\n"
        "logging.getLogger('grpc').info('not of interest')\n"
        "warnings.warn('deprecated', UserWarning)\n"
    )
    assert [line["level"] for line in lines] == ["info", "warning", "warning"]
    assert [line["logger"] for line in lines] == [
        "semel_common.reloaded_files",
        "grpc",
        "py.warnings",
    ]
    assert lines[0]["event"] == "loaded again: tls.crt"
    assert all(line["timestamp"] and line["service"] == "semel-test" for line in lines)


def test_a_line_that_cannot_be_made_is_dropped_and_told_of() -> None:
    lines = lines_of(
        "class Broken:\n"
        "    def __repr__(self):\n"
        "        raise LookupError('no text')\n"
        "structlog.get_logger().info('lost', field=Broken())\n"
        "structlog.get_logger().info('next')\n"
    )
    assert [line["event"] for line in lines] == ["next", "lines of this log were lost"]
    assert (lines[1]["lines"], lines[1]["error"]) == (1, "LookupError: no text")


def test_a_service_with_a_closed_pipe_as_its_log_serves_and_stops_in_order(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ready = tmp_path / "ready"
    program = (
        "import asyncio\n"
        "from semel_runtime.process.main import main\n"
        "class App:\n"
        "    def __init__(self, *_):\n"
        "        from semel_runtime.server.calls import Handlers\n"
        "        self.handlers = Handlers()\n"
        "        self.ready, self.failed = asyncio.Event(), asyncio.Event()\n"
        "    async def run(self):\n"
        "        self.ready.set()\n"
        f"        Path({str(ready)!r}).touch()\n"
        "        await asyncio.Event().wait()\n"
        "    def drain(self): pass\n"
        "    async def __aenter__(self): return self\n"
        "    async def __aexit__(self, *_): pass\n"
        f"sys.argv = ['semel-test', '--data_dir={tmp_path / 'data'}']\n"
        "main('semel-test', ServiceSettings, App)\n"
    )
    command = (sys.executable, "-c", SERVICE + program)
    with subprocess.Popen(command, stderr=writer) as process:
        os.close(writer)
        while not ready.exists():
            assert process.poll() is None, "it ended before it was ready"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
