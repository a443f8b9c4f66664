"""The time of a write, as SQLite's thread measures it."""

import asyncio
import time
from pathlib import Path

from semel_runtime.journal.engine_choice import open_journal


async def test_an_append_tells_how_long_its_own_write_took(tmp_path: Path) -> None:
    async with await open_journal(tmp_path, service="test") as journal:
        await journal.claim("token")
        began = time.perf_counter()
        appended = asyncio.create_task(journal.append(0, [b"record"]))
        noted = asyncio.create_task(journal.set_note("what SQLite's thread", "runs next"))
        write_s = await appended
        elapsed_s = time.perf_counter() - began
        await noted
        assert 0 < write_s < elapsed_s


async def test_what_writes_nothing_takes_no_time(tmp_path: Path) -> None:
    async with await open_journal(tmp_path, service="test") as journal:
        await journal.claim("token")
        assert await journal.append(0, []) == 0
