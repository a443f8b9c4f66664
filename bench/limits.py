"""What the machine itself can do: the bounds of every other figure, taken in the same run."""

import asyncio
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from bench.measure import Figure, percentile

_PAGE = bytes(4_096)
_CHUNK = bytes(1 << 20)
_CHUNKS = 256
_TIMES = 500
_ECHO = """
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    connection, _ = server.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := connection.recv(4096):
        connection.sendall(data)
"""


async def limits(folder: Path) -> list[Figure]:
    """Measure all, on the file system of a folder; some seconds."""
    return [
        Figure(name="fdatasync of 4 KiB appended, p50", value=_appended_ms(folder), unit="ms"),
        Figure(
            name="fdatasync of 4 KiB overwritten, p50", value=_overwritten_ms(folder), unit="ms"
        ),
        Figure(name="sequential write of 256 MiB, synced", value=_write_mb_s(folder), unit="MB/s"),
        Figure(name="SQLite commits, WAL, synchronous=FULL", value=_sqlite_s(folder), unit="/s"),
        Figure(name="TCP round trip of 100 B, two processes, p50", value=_tcp_ms(), unit="ms"),
        Figure(name="event loop → thread → event loop, p50", value=await _thread_ms(), unit="ms"),
    ]


def _appended_ms(folder: Path) -> float:
    with (folder / "appended").open("wb", buffering=0) as file:

        def append() -> None:
            file.write(_PAGE)
            os.fdatasync(file.fileno())

        return _median_ms(append)


def _overwritten_ms(folder: Path) -> float:
    with (folder / "overwritten").open("wb", buffering=0) as file:
        file.write(_PAGE)
        os.fsync(file.fileno())

        def overwrite() -> None:
            os.pwrite(file.fileno(), _PAGE, 0)
            os.fdatasync(file.fileno())

        return _median_ms(overwrite)


def _write_mb_s(folder: Path) -> float:
    path = folder / "sequential"
    started = time.perf_counter()
    with path.open("wb", buffering=0) as file:
        for _ in range(_CHUNKS):
            file.write(_CHUNK)
        os.fdatasync(file.fileno())
    rate = _CHUNKS * len(_CHUNK) / 1e6 / (time.perf_counter() - started)
    path.unlink()
    return rate


def _sqlite_s(folder: Path) -> float:
    """Return commits of one row of 100 B a second."""
    with closing(sqlite3.connect(folder / "limits.sqlite", isolation_level=None)) as database:
        database.execute("pragma journal_mode=wal")
        database.execute("pragma synchronous=full")
        database.execute("create table rows (value blob)")
        started = time.perf_counter()
        for _ in range(_TIMES):
            database.execute("insert into rows values (?)", (_PAGE[:100],))
        return _TIMES / (time.perf_counter() - started)


def _tcp_ms() -> float:
    command = [sys.executable, "-c", _ECHO]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        address = ("127.0.0.1", int(process.stdout.readline()))
        with socket.create_connection(address) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

            def round_trip() -> None:
                connection.sendall(_PAGE[:100])
                connection.recv(4_096)

            return _median_ms(round_trip)


async def _thread_ms() -> float:
    took = []
    for _ in range(_TIMES):
        started = time.perf_counter()
        await asyncio.to_thread(int)
        took.append((time.perf_counter() - started) * 1_000)
    return percentile(took, 0.5)


def _median_ms(work: Callable[[], None]) -> float:
    took = []
    for _ in range(_TIMES):
        started = time.perf_counter()
        work()
        took.append((time.perf_counter() - started) * 1_000)
    return percentile(took, 0.5)
