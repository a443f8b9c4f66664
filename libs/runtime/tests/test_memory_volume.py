"""The disk in memory loses what a real one may lose, and nothing else."""

import pytest
from journal_harness import PLENTY, MemoryEngine, batch, claimed

from semel_runtime.journal import Journal


async def offsets(journal: Journal) -> list[int]:
    batches = await journal.batches.read(1, 0, max_bytes=PLENTY, upto=PLENTY)
    return [one.base_offset for one in batches]


@pytest.mark.parametrize("synced", [False, True])
async def test_what_was_deleted_comes_back_unless_a_write_after_it_was_synced(synced: bool) -> None:
    engine = MemoryEngine()
    journal = await claimed(engine)
    await journal.append(0, [b"zero"], [batch(1, 0), batch(1, 10), batch(1, 20)])

    for _ in range(2):
        await journal.batches.delete(1, before=PLENTY, rows_max=1, bytes_max=PLENTY)
        await journal.batches.give_back()
    assert await offsets(journal) == [20]
    if synced:
        await journal.append(1, [b"one"])
    engine.volume.lose_unsynced()

    assert await offsets(await claimed(engine, "next")) == ([20] if synced else [0, 10, 20])
