"""Space that comes back harms no payload that a batch has, or has again after a loss of power."""

from unittest import mock

import pytest
from journal_harness import PLENTY, SqliteEngine, claimed
from payloads_harness import BLOCK, SIZE, delete, files, fill, payload, read, taken

from semel_runtime.journal import JournalFencedError
from semel_runtime.journal.sqlite import SqliteJournal
from semel_runtime.journal.sqlite.payloads import payload_space


async def test_a_file_has_a_number_that_no_file_had_before(small_files: SqliteEngine) -> None:
    """Places that a later step frees would else be holes in the new file."""
    journal = await claimed(small_files)
    await fill(journal, 0, 2)
    journal = await claimed(small_files, "successor")
    while await journal.batches.delete(1, before=2, rows_max=9, bytes_max=PLENTY):
        pass
    with mock.patch.object(payload_space, "_STEP_MAX", 1):
        assert await journal.batches.give_back()
        await fill(journal, 2, 4)
        while await journal.batches.give_back():
            pass

    assert await read(journal) == [payload(2), payload(3)]
    assert taken(small_files) < 2 * SIZE + 3 * BLOCK


async def test_no_file_goes_for_a_deletion_that_is_not_durable(small_files: SqliteEngine) -> None:
    """A deletion beside a step of compaction: a loss of power brings its batch back."""
    journal = await claimed(small_files)
    assert isinstance(journal, SqliteJournal)
    await fill(journal, 0, 3)
    await journal.batches.rewrite(1, removed=[0], replaced=[])
    events: list[str] = []
    fetch = journal._readers.fetch

    async def noted(statement: str, parameters: tuple[int]) -> object:
        events.append("look")
        return await fetch(statement, parameters)

    await journal._writer._connection.set_trace_callback(events.append)
    with mock.patch.object(journal._readers, "fetch", noted):
        assert await journal.batches.give_back()

    ran = [event.split(" SET")[0] for event in events if not event.startswith("SELECT")]
    assert ran[-1] == "UPDATE owner"
    assert "look" in ran


async def test_a_claim_that_another_one_follows_removes_no_file_of_its_successor(
    small_files: SqliteEngine,
) -> None:
    elder = await claimed(small_files, "elder")
    assert isinstance(elder, SqliteJournal)
    await fill(elder, 0, 1)
    space = elder._appender._space
    left = await space.look()
    successor = await claimed(small_files, "successor")
    await fill(successor, 1, 4)

    await space.begin(left)

    assert await read(successor) == [payload(at) for at in range(4)]


async def test_the_file_that_takes_payloads_stays_below_one_of_a_deposed_process(
    small_files: SqliteEngine,
) -> None:
    elder = await claimed(small_files, "elder")
    successor = await claimed(small_files, "successor")
    await fill(successor, 0, 1)
    with pytest.raises(JournalFencedError):
        await fill(elder, 0, 1, partition=2)
    assert files(small_files) == ["journal.payloads-1", "journal.payloads-2"]

    await delete(successor, 1)
    await fill(successor, 1, 2)

    assert await read(successor) == [payload(1)]


async def test_a_hole_in_a_file_that_another_step_has_removed_is_no_error(
    small_files: SqliteEngine,
) -> None:
    payload_space._punch(small_files.folder, [payload_space._Gap(1, 0, None)])
    assert files(small_files) == []
