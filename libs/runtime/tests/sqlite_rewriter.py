"""A child process that rewrites the same batches until it is killed, and prints each round.

After round n, all batches that are left have the payload n, and the first few are gone.
"""

import asyncio
import sys
from itertools import count
from pathlib import Path

from journal_harness import batch

from semel_runtime.journal.sqlite import SqliteJournal

BATCHES = 40
ROUNDS_PER_BATCH = 4
"""After as many rounds, one more batch goes."""


async def rewrite_for_ever(folder: Path) -> None:
    async with await SqliteJournal.open(folder, service="test") as journal:
        await journal.claim("child")
        await journal.append(0, [b"record"], [batch(1, at, 1) for at in range(BATCHES)])
        for number in count(1):
            gone = min(number // ROUNDS_PER_BATCH, BATCHES - 1)
            replaced = [batch(1, at, 1, payload=b"%d" % number) for at in range(gone, BATCHES)]
            await journal.batches.rewrite(1, removed=range(gone), replaced=replaced)
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(rewrite_for_ever(Path(sys.argv[1])))
