"""A child process that appends until it is killed, and prints what was acknowledged.

Each append has one record and one record batch, both with the number of the append.
"""

import asyncio
import sys
from pathlib import Path

from journal_harness import batch

from semel_runtime.journal.sqlite import SqliteJournal, SqliteOptions


async def append_for_ever(folder: Path, wal_bytes: int) -> None:
    options = SqliteOptions(wal_bytes=wal_bytes)
    async with await SqliteJournal.open(folder, service="test", options=options) as journal:
        at = (await journal.claim("child")).next_offset
        while True:
            await journal.append(at, [b"%d" % at], [batch(1, at, 1, payload=b"%d" % at)])
            sys.stdout.write(f"{at}\n")
            sys.stdout.flush()
            at += 1


if __name__ == "__main__":
    asyncio.run(append_for_ever(Path(sys.argv[1]), int(sys.argv[2])))
