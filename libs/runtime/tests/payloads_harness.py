"""Payloads that are alone too large for the log, and the files that they are in."""

from journal_harness import PLENTY, SqliteEngine, batch

from semel_runtime.journal import Journal

BLOCK = 4_096
SIZE = 49 * BLOCK
"""Of a payload."""


def payload(number: int) -> bytes:
    return bytes([number]) * SIZE


async def fill(journal: Journal, first: int, end: int, *, partition: int = 1) -> None:
    for at in range(first, end):
        await journal.append(at, [b"record"], [batch(partition, at, 1, payload=payload(at))])


async def read(journal: Journal, offset: int = 0, *, max_bytes: int = PLENTY) -> list[bytes]:
    batches = await journal.batches.read(1, offset, max_bytes=max_bytes, upto=PLENTY)
    return [each.payload for each in batches]


async def delete(journal: Journal, before: int, *, partition: int = 1) -> None:
    while await journal.batches.delete(partition, before=before, rows_max=9, bytes_max=PLENTY):
        pass
    while await journal.batches.give_back():
        pass


def files(engine: SqliteEngine) -> list[str]:
    return sorted(path.name for path in engine.folder.glob("journal.payloads-*"))


def taken(engine: SqliteEngine) -> int:
    """Return how many bytes of the disk the files take."""
    return sum((engine.folder / name).stat().st_blocks * 512 for name in files(engine))
