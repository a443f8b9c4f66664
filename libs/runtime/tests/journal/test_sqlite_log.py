"""The log in front of SQLite's tables: its content, its readers, its owners, and the way back."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest
from journal_harness import (
    PLENTY,
    MemoryEngine,
    SqliteEngine,
    batch,
    claimed,
    offsets_read,
    pieces_of,
    read_all,
)
from logged_folders import (
    LARGE,
    contents,
    fill,
    killed,
    logs,
    stored,
)

from semel_runtime.journal import (
    JournalFencedError,
    JournalUnknownError,
)
from semel_runtime.journal.sqlite import SqliteJournal, SqliteOptions, table_filler


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables get nothing before a reader waits for it."""
    monkeypatch.setattr(table_filler, "_DELAY_SECONDS", 3_600)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[SqliteEngine]:
    engine = SqliteEngine(tmp_path / "data")
    yield engine
    await engine.close()


# -- what is where ---------------------------------------------------------------------------------


async def test_an_append_is_in_the_log_first_and_its_batch_is_read_from_memory(
    engine: SqliteEngine,
) -> None:
    journal = await claimed(engine)
    await fill(journal, 0, 3)

    assert stored(engine.folder) == 0
    assert await offsets_read(journal, 1) == [1, 2]
    assert stored(engine.folder) == 0
    assert await contents(killed(engine)) == ([b"0", b"1", b"2"],) * 2
    assert await read_all(journal) == [b"0", b"1", b"2"]
    assert stored(engine.folder) == 3
    assert await offsets_read(journal, 1) == [1, 2]


async def test_the_tables_follow_by_themselves(
    engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_filler, "_DELAY_SECONDS", 0.001)
    journal = await claimed(engine)
    await fill(journal, 0, 3)

    async with asyncio.timeout(30):
        while stored(engine.folder) < 3:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0)


async def test_much_is_filled_in_without_a_delay(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    for at in range(20):
        await journal.append(at, [bytes(100_000)])

    async with asyncio.timeout(30):
        while stored(engine.folder) < 11:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0)


async def test_a_large_append_goes_into_the_tables_behind_what_was_before_it(
    engine: SqliteEngine,
) -> None:
    journal = await claimed(engine)
    await fill(journal, 0, 2)
    await journal.append(2, [b"large"], [batch(1, 2, 1, payload=LARGE)])

    assert stored(engine.folder) == 3
    await fill(journal, 3, 5)
    assert stored(engine.folder) == 3
    assert await contents(killed(engine)) == (
        [b"0", b"1", b"large", b"3", b"4"],
        [b"0", b"1", LARGE, b"3", b"4"],
    )


async def test_an_append_behind_a_deletion_makes_it_durable(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    await fill(journal, 0, 3)
    assert await journal.batches.delete(1, before=2, rows_max=9, bytes_max=PLENTY) == 2

    await fill(journal, 3, 4)
    assert stored(engine.folder) == 4
    await fill(journal, 4, 5)
    assert stored(engine.folder) == 4
    assert await offsets_read(journal, 0) == [2, 3, 4]


async def test_the_files_of_the_log_are_written_again_and_again(tmp_path: Path) -> None:
    options = SqliteOptions(log_bytes=64 * 1024)
    folder = tmp_path / "data"
    async with await SqliteJournal.open(folder, service="test", options=options) as journal:
        await journal.claim("token")
        for at in range(60):
            await journal.append(at, [b"%d" % at * 2_000])
        assert sum(path.stat().st_size for path in folder.glob("journal.log-*")) == 64 * 1024
        assert stored(folder) > 30
        shutil.copytree(folder, tmp_path / "copy")
    records, _ = await contents(tmp_path / "copy")
    assert records == [b"%d" % at * 2_000 for at in range(60)]


async def test_every_reader_waits_for_the_tables_or_reads_memory(engine: SqliteEngine) -> None:
    """However far the tables have come, a reader finds everything."""
    random = Random(5)
    journal, memory = await claimed(engine), await claimed(MemoryEngine())
    end = 0
    for at in range(60):
        gap, count = random.choice([0, 0, 2]), random.randrange(1, 4)
        one = batch(1, end + gap, count, timestamp_ms=random.randrange(100))
        end += gap + count
        for each in (journal, memory):
            await each.append(at, [b"record"], [one, batch(2, at, 1)])
        if random.random() < 0.2:
            await journal.batches.later(1, 0, upto=1)
        offset, upto, size = (
            random.randrange(end),
            random.randrange(end + 9),
            random.randrange(3_000),
        )
        found = [
            await offsets_read(each, offset, max_bytes=size, upto=upto)
            for each in (journal, memory)
        ]
        assert found[0] == found[1], (at, offset, upto, size)
        if random.random() < 0.2:
            assert await journal.batches.first_at(1, offset, upto=upto) == (
                await memory.batches.first_at(1, offset, upto=upto)
            )


async def test_snapshots_deletions_and_rewrites_wait_for_the_tables(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    await fill(journal, 0, 4)
    await journal.replace(3, pieces_of([(2, b"state")]))
    assert await read_all(journal, 3) == [b"3"]

    await fill(journal, 4, 8)
    new = batch(1, 6, 1, payload=b"new")
    await journal.batches.rewrite(1, removed=[5], replaced=[new])
    assert await offsets_read(journal, 0) == [0, 1, 2, 3, 4, 6, 7]

    await fill(journal, 8, 10)
    assert await journal.batches.delete(1, before=9, rows_max=99, bytes_max=PLENTY) == 8
    assert await offsets_read(journal, 0) == [9]


async def test_cancelled_appends_are_made_in_their_order(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    payloads = [b"0", LARGE, b"2", b"3", LARGE, b"5"]
    for at, payload in enumerate(payloads):
        append = asyncio.ensure_future(
            journal.append(at, [b"%d" % at], [batch(1, at, 1, payload=payload)])
        )
        await asyncio.sleep(0)
        append.cancel()
        await asyncio.wait([append])
    await journal.append(6, [])

    assert await read_all(journal) == [b"%d" % at for at in range(6)]
    batches = await journal.batches.read(1, 0, max_bytes=PLENTY, upto=PLENTY)
    assert [each.payload for each in batches] == payloads


# -- openings --------------------------------------------------------------------------------------


async def test_a_clean_stop_leaves_tables_alone(engine: SqliteEngine) -> None:
    journal = await claimed(engine)
    await fill(journal, 0, 3)
    assert logs(engine.folder) == ["journal.log-1-0", "journal.log-1-1"]

    await journal.close()

    assert stored(engine.folder) == 3
    assert logs(engine.folder) == []
    claim = await (await engine.open()).claim("next")
    assert (claim.epoch, claim.next_offset) == (2, 3)


async def test_each_claim_has_a_log_of_its_own_with_a_higher_number(engine: SqliteEngine) -> None:
    for number in (1, 2):
        journal = await claimed(engine, f"token {number}")
        await fill(journal, number - 1, number)
        assert logs(engine.folder) == [f"journal.log-{number}-0", f"journal.log-{number}-1"]
        await journal.close()


async def test_what_a_deposed_owner_had_in_its_log_is_carried_over(engine: SqliteEngine) -> None:
    elder = await claimed(engine, "elder")
    await fill(elder, 0, 3)
    younger = await claimed(engine, "younger")

    assert stored(engine.folder) == 3
    assert await read_all(younger) == [b"0", b"1", b"2"]
    await fill(younger, 3, 4)
    with pytest.raises(JournalFencedError):
        await elder.append(3, [b"late"])
    with pytest.raises(JournalFencedError):
        await elder.batches.delete(1, before=1, rows_max=1, bytes_max=1)
    assert logs(engine.folder) == ["journal.log-2-0", "journal.log-2-1"]
    await elder.close()
    assert await contents(killed(engine)) == ([b"0", b"1", b"2", b"3"],) * 2


async def test_a_deposed_owner_may_claim_again(engine: SqliteEngine) -> None:
    elder = await claimed(engine, "elder")
    await fill(elder, 0, 2)
    younger = await claimed(engine, "younger")
    await fill(younger, 2, 4)
    with pytest.raises(JournalFencedError):
        await elder.append(2, [b"late"])

    claim = await elder.claim("elder again")

    assert (claim.epoch, claim.next_offset) == (3, 4)
    await fill(elder, 4, 5)
    assert await read_all(elder) == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_second_handle_with_the_same_token_deposes_the_first(engine: SqliteEngine) -> None:
    first = await claimed(engine, "token")
    await fill(first, 0, 2)
    second = await claimed(engine, "token")
    await fill(second, 2, 3)

    with pytest.raises(JournalUnknownError, match="with the token of this one"):
        await first.append(2, [b"other"])
    with pytest.raises(JournalUnknownError, match="the handle is dead"):
        await first.append(2, [LARGE])
    assert await read_all(second) == [b"0", b"1", b"2"]


async def test_a_second_handle_with_the_same_token_takes_large_appends_from_the_first(
    engine: SqliteEngine,
) -> None:
    first = await claimed(engine, "token")
    second = await claimed(engine, "token")

    with pytest.raises(JournalUnknownError):
        await first.append(0, [LARGE])
    await second.append(0, [b"second"])
    await claimed(engine, "token")
    with pytest.raises(JournalUnknownError, match="with the token of this one"):
        await second.append(1, [])
