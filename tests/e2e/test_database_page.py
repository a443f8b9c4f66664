"""The programs of the page about the application's own database, each as a process of its own."""

import asyncio
import signal
import sqlite3
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from committed_records import decided_records
from documented.pages import blocks
from documented.shell import ADDRESS

from aiosemel import SemelClient
from semel_local import LocalCluster
from semel_runtime.testing.default_signals import default_signals

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

PAGE = "docs/use/database.md"
LINES_MAX = 40
PROGRAMS = [text for _, language, text in blocks(PAGE) if language == "python"]
STORE, TRANSFORM, OUTBOX, PRODUCER = PROGRAMS


async def records(client: SemelClient, topic: str) -> list[bytes | None]:
    return [record.value for record in await decided_records(client, [(topic, 0)])]


@pytest.mark.parametrize(
    ("program", "file", "query", "topic", "expected"),
    [
        (STORE, "ledger.db", "SELECT text FROM payment ORDER BY number", None, ["a", "b"]),
        (
            TRANSFORM,
            "payments.db",
            "SELECT text FROM receipt ORDER BY number",
            "receipts",
            ["a", "b"],
        ),
        (OUTBOX, "shop.db", "SELECT number FROM purchase", "purchases", [1]),
        (PRODUCER, "bank.db", "SELECT number FROM transfer", "transfers", [1]),
    ],
)
async def test_a_program_of_the_page_does_what_it_says(
    tmp_path: Path, program: str, file: str, query: str, topic: str | None, expected: list[object]
) -> None:
    assert program.count("\n") <= LINES_MAX
    async with LocalCluster() as cluster, cluster.client() as client:
        for each in ("orders", "receipts", "purchases", "transfers"):
            await client.admin().create_topic(each, partitions=1)
        async with client.producer() as producer:
            await producer.send("orders", b"a")
            await producer.send("orders", b"b")
        await run(tmp_path, program.replace(ADDRESS, cluster.bootstrap), file, query, expected)
        if topic is not None:
            assert [str(each) for each in expected] == [
                (value or b"").decode() for value in await records(client, topic)
            ]


async def run(folder: Path, program: str, file: str, query: str, expected: list[object]) -> None:
    """Run a program until its rows are there; end it as a terminal does, if it goes on."""
    with default_signals():
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, cwd=folder, stdout=PIPE, stderr=PIPE
        )
    try:
        async with asyncio.timeout(60):
            await until_written(process, folder / file, query, expected)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        _, error = await process.communicate()
    assert process.returncode == 0, error.decode()
    assert rows(folder / file, query) == expected


async def until_written(
    process: asyncio.subprocess.Process, file: Path, query: str, expected: list[object]
) -> None:
    ended = asyncio.ensure_future(process.wait())
    while not ended.done() and rows(file, query) != expected:
        await asyncio.wait([ended], timeout=0.05)
    await asyncio.wait([ended], timeout=1)  # Its records follow.
    ended.cancel()


def rows(file: Path, query: str) -> list[object]:
    if not file.exists():
        return []
    database = sqlite3.connect(file)
    try:
        return [value for (value,) in database.execute(query)]
    except sqlite3.OperationalError:
        return []  # The table is not there yet.
    finally:
        database.close()
