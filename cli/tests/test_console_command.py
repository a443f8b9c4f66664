"""`semel console`, and the console of `semel up`, as processes that a browser reaches."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from command_line import CommandLine

from semel_local import LocalCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]

SEMEL = (sys.executable, "-c", "from semel_cli.main import main; main()")
DEADLINE_S = 40


@asynccontextmanager
async def running(*command: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a command; killed at the end, if it still runs."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def until(stream: asyncio.StreamReader | None, pattern: str) -> str:
    """Read lines until one matches; returns its first group."""
    assert stream is not None
    said = []
    async with asyncio.timeout(DEADLINE_S):
        while line := (await stream.readline()).decode():
            said.append(line)
            if found := re.search(pattern, line):
                return found[1]
    raise AssertionError(f"ended without {pattern!r}: {said}")


async def home_page(url: str) -> str:
    """Return the home page, as soon as the console answers."""
    transport = httpx.AsyncHTTPTransport(retries=10)
    async with httpx.AsyncClient(transport=transport, timeout=DEADLINE_S) as browser:
        return (await browser.get(url)).text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_console_serves_until_a_signal(number: signal.Signals) -> None:
    async with LocalCluster() as cluster:
        words = ("console", "--listen", "127.0.0.1:0", "--bootstrap", cluster.bootstrap)
        async with running(*SEMEL, *words) as console:
            url = await until(console.stderr, r"Console: (http://127\.0\.0\.1:\d+/) \(read-only\)")
            assert "Nothing is wrong." in await home_page(url)
            async with httpx.AsyncClient() as browser, browser.stream("GET", f"{url}events"):
                console.send_signal(number)
                async with asyncio.timeout(DEADLINE_S):
                    out, err = await console.communicate()
            assert (console.returncode, out, err) == (0, b"", b"")


async def test_a_console_may_end_with_its_parent() -> None:
    async with LocalCluster() as cluster:
        words = ("--ends-with-parent", "--listen", "127.0.0.1:0", "-b", cluster.bootstrap)
        script = '"$@" & wait'
        async with running("sh", "-c", script, "sh", *SEMEL, "console", *words) as shell:
            await until(shell.stderr, r"Console: (\S+)")
            shell.kill()
            async with asyncio.timeout(DEADLINE_S):
                await shell.communicate()  # Its pipes are open for as long as the console runs.


async def test_up_has_a_console_that_the_cluster_can_do_without(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    async with running(*SEMEL, "up", "--data", str(folder), "--port", "0") as up:
        url = await until(up.stdout, r"^Console\s+(\S+)")
        await until(up.stderr, "(Ready) after")
        assert "Nothing is wrong." in await home_page(url)
        log = (folder / "logs" / "console.log").read_text("utf-8")
        assert url in log
        os.kill(console_pid(folder), signal.SIGKILL)
        await until(up.stderr, r"(console ended \(killed by SIGKILL\))")
        await until(up.stderr, "(the cluster goes on without it)")
        up.send_signal(signal.SIGINT)
        async with asyncio.timeout(DEADLINE_S):
            await up.communicate()
        assert up.returncode == 0


def console_pid(folder: Path) -> int:
    """Return the process that has a cluster's console log open."""
    log = folder / "logs" / "console.log"
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            try:
                if (process / "fd" / "1").samefile(log):
                    return int(process.name)
            except OSError:
                continue  # It has ended, or is another user's.
    raise AssertionError(f"no process writes {log}")


async def test_up_may_be_without_a_console(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    words = ("up", "--data", str(folder), "--port", "0", "--no-console")
    async with running(*SEMEL, *words) as up:
        await until(up.stderr, "(Ready) after")
        up.send_signal(signal.SIGINT)
        async with asyncio.timeout(DEADLINE_S):
            out, _ = await up.communicate()
    assert b"Console" not in out
    assert not (folder / "logs" / "console.log").exists()


def test_a_console_that_strangers_would_reach_does_not_start() -> None:
    semel = CommandLine({"SEMEL_BOOTSTRAP": "127.0.0.1:1"})
    refused = semel("console", "--listen", "192.0.2.1:9080", status=2)
    assert "--sign-in" in refused.err
    assert "host:port" in semel("console", "--listen", "9080", status=2).err
