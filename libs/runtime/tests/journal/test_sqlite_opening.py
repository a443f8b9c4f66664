"""Opening a data folder: every error is a sentence that says what to do."""

import errno
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from sqlite3 import Row

import aiosqlite
import pytest
from journal_harness import read_all

from semel_runtime.journal import JournalInUseError, JournalOpenError
from semel_runtime.journal.engine_choice import open_journal
from semel_runtime.journal.sqlite import SqliteJournal, SqliteOptions
from semel_runtime.journal.sqlite.folder import folder_sentence
from semel_runtime.journal.sqlite.schema import SCHEMA_VERSION


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def made_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.fixture
def foreign_folder() -> Iterator[Path]:
    """Give a folder that this user may not write; root becomes another user for the test."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65_534)
        yield folder
        os.seteuid(user)
        folder.chmod(0o755)


async def sql(folder: Path, statement: str) -> None:
    """Change the file behind the engine's back."""
    async with aiosqlite.connect(folder / "journal.db", isolation_level=None) as connection:
        await connection.execute(statement)


async def test_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    folder = tmp_path / "with spaces" / "a%20b?c#d" / "ä"

    async with await SqliteJournal.open(folder, service="test") as journal:
        await journal.claim("token")
        await journal.append(0, [b"zero"])
        assert await read_all(journal) == [b"zero"]

    assert (folder / "journal.db").exists()


async def test_second_opening_in_one_process_is_refused_too(folder: Path) -> None:
    journal = await SqliteJournal.open(folder, service="test")

    with pytest.raises(JournalInUseError):
        await SqliteJournal.open(folder, service="test")
    await journal.close()

    await (await SqliteJournal.open(folder, service="test")).close()


async def test_refused_opening_leaves_the_folder_free(folder: Path) -> None:
    await (await SqliteJournal.open(folder, service="coordinator")).close()

    with pytest.raises(JournalOpenError, match="Give each service a data folder of its own"):
        await SqliteJournal.open(folder, service="broker")

    await (await SqliteJournal.open(folder, service="coordinator")).close()


async def test_newer_schema_is_refused_with_both_versions(folder: Path) -> None:
    await (await SqliteJournal.open(folder, service="test")).close()
    await sql(folder, "PRAGMA user_version = 99")

    with pytest.raises(JournalOpenError, match=r"has schema version 99, this program knows \d"):
        await SqliteJournal.open(folder, service="test")


async def test_file_that_is_no_database_is_refused_and_not_touched(
    made_folder: Path,
) -> None:
    folder = made_folder
    file = folder / "journal.db"
    file.write_bytes(b"my holiday photographs" * 1000)

    with pytest.raises(JournalOpenError, match="not a database at all"):
        await SqliteJournal.open(folder, service="test")

    assert file.read_bytes() == b"my holiday photographs" * 1000


async def test_file_of_a_first_start_that_was_killed_is_taken(made_folder: Path) -> None:
    """SQLite writes the first page when it is told of its log, before there is any table."""
    await sql(made_folder, "PRAGMA journal_mode = WAL")
    assert (made_folder / "journal.db").stat().st_size > 0

    async with await SqliteJournal.open(made_folder, service="test") as journal:
        assert (await journal.claim("token")).next_offset == 0


async def test_database_of_another_program_is_refused_and_not_touched(
    made_folder: Path,
) -> None:
    folder = made_folder
    await sql(folder, "CREATE TABLE photographs (name TEXT)")
    before = (folder / "journal.db").read_bytes()

    with pytest.raises(JournalOpenError, match="is not a journal of Semel"):
        await SqliteJournal.open(folder, service="test")

    assert (folder / "journal.db").read_bytes() == before


async def test_two_first_starts_at_once_in_a_folder_without_locks_make_one_journal(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second start comes before any one statement of the first, and is done with its own."""
    statements = await _statements_of_a_first_start(folder, monkeypatch)

    for number in range(statements):
        met = folder.with_name(f"met-{number}")
        first, second = await _two_starts(met, monkeypatch, second_comes_before=number)
        async with first, second:
            await second.claim("second")
            assert (await first.claim("first")).next_offset == 0
            await first.append(0, [b"zero"])
            assert await read_all(first) == [b"zero"]


async def _statements_of_a_first_start(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Count them, up to the end of the migration; there are a few, or the test above is empty."""
    seen: list[str] = []

    async def note(statement: str) -> None:
        seen.append(statement)

    with _told_before_statements(monkeypatch, note):
        await (await SqliteJournal.open(folder, service="test")).close()
    until = next(at for at, each in enumerate(seen) if "wal_checkpoint" in each) + 1
    assert until > 2 + SCHEMA_VERSION
    return until


async def _two_starts(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, second_comes_before: int
) -> tuple[SqliteJournal, SqliteJournal]:
    options = SqliteOptions(exclusive=False)
    numbers = count()
    started: list[SqliteJournal] = []

    async def come_between(_statement: str) -> None:
        if next(numbers) == second_comes_before:
            started.append(await SqliteJournal.open(folder, service="test", options=options))

    with _told_before_statements(monkeypatch, come_between):
        first = await SqliteJournal.open(folder, service="test", options=options)
    return first, started[0]


@contextmanager
def _told_before_statements(
    monkeypatch: pytest.MonkeyPatch, tell: Callable[[str], Awaitable[None]]
) -> Iterator[None]:
    """Tell of each statement that is about to run; what is told may run others."""
    fetch, run = aiosqlite.Connection.execute_fetchall, aiosqlite.Connection.executescript
    telling = False

    async def told(statement: str) -> None:
        nonlocal telling
        if not telling:
            telling = True
            await tell(statement)
            telling = False

    async def fetched(
        self: aiosqlite.Connection, sql: str, parameters: Sequence[str] = ()
    ) -> Iterable[Row]:
        await told(sql)
        return await fetch(self, sql, parameters)

    async def ran(self: aiosqlite.Connection, script: str) -> object:
        await told(script)
        return await run(self, script)

    with monkeypatch.context() as patch:
        patch.setattr(aiosqlite.Connection, "execute_fetchall", fetched)
        patch.setattr(aiosqlite.Connection, "executescript", ran)
        yield


async def test_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    for folder in (file, file / "below"):
        with pytest.raises(JournalOpenError, match="is a file, or lies below one"):
            await SqliteJournal.open(folder, service="test")


async def test_full_disk_at_start_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semel_runtime.journal.sqlite.opening._PRAGMAS", ("max_page_count = 2",))

    with pytest.raises(JournalOpenError, match=r"is full\. Free some space, then start again"):
        await SqliteJournal.open(folder, service="test")


async def test_folder_without_the_right_to_write_is_refused(foreign_folder: Path) -> None:
    for folder in (foreign_folder, foreign_folder / "below"):
        with pytest.raises(JournalOpenError, match=r"cannot be written\. Give this user the right"):
            await SqliteJournal.open(folder, service="test")


async def test_file_system_without_locks_is_no_obstacle(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(_: int, __: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("fcntl.flock", flock)

    async with await SqliteJournal.open(folder, service="test") as journal:
        assert (await journal.claim("token")).epoch == 1


async def test_python_with_an_old_sqlite_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aiosqlite.sqlite_version_info", (3, 36, 0))

    with pytest.raises(JournalOpenError, match=r"Use a Python with SQLite 3\.37 or newer"):
        await SqliteJournal.open(folder, service="test")


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.EROFS, "cannot be written. Give this user the right to write there"),
        (errno.ENOSPC, "is full. Free some space, then start again"),
        (errno.ENAMETOOLONG, "cannot be used: File name too long. Choose another one"),
    ],
)
def test_every_error_of_the_folder_says_what_to_do(folder: Path, number: int, message: str) -> None:
    sentence = folder_sentence(folder, OSError(number, os.strerror(number)))

    assert str(folder) in sentence
    assert message in sentence


async def test_first_schema_is_stored_in_the_file(folder: Path) -> None:
    await (await SqliteJournal.open(folder, service="test")).close()

    async with aiosqlite.connect(folder / "journal.db") as connection:
        rows = list(await connection.execute_fetchall("PRAGMA user_version"))

    assert rows[0][0] == SCHEMA_VERSION


async def test_migration_runs_once_and_keeps_the_content(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await SqliteJournal.open(folder, service="test") as journal:
        await journal.claim("old")
        await journal.append(0, [b"zero"])
    opening = "semel_runtime.journal.sqlite.opening"
    script = "CREATE TABLE more (id INTEGER);"
    monkeypatch.setattr(f"{opening}.MIGRATIONS", ("never run again",) * SCHEMA_VERSION + (script,))
    monkeypatch.setattr(f"{opening}.SCHEMA_VERSION", SCHEMA_VERSION + 1)

    for token in ("new", "again"):
        async with await SqliteJournal.open(folder, service="test") as journal:
            await journal.claim(token)
            assert await read_all(journal) == [b"zero"]

    monkeypatch.undo()
    with pytest.raises(JournalOpenError, match="written by a newer version of Semel"):
        await SqliteJournal.open(folder, service="test")


async def test_failed_migration_changes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await SqliteJournal.open(folder, service="test")).close()
    script = "CREATE TABLE more (id INTEGER); nonsense;"
    monkeypatch.setattr(
        "semel_runtime.journal.sqlite.opening.MIGRATIONS", ("",) * SCHEMA_VERSION + (script,)
    )

    with pytest.raises(JournalOpenError, match="nonsense"):
        await SqliteJournal.open(folder, service="test")

    monkeypatch.undo()
    await (await SqliteJournal.open(folder, service="test")).close()


async def test_location_that_is_a_path_opens_a_folder(folder: Path) -> None:
    async with await open_journal(str(folder), service="test", cluster_id="one") as journal:
        assert journal.cluster_id == "one"


async def test_location_with_a_scheme_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(JournalOpenError, match="no engine for 'mysql'"):
        await open_journal("mysql://host/name", service="test")

    assert os.listdir(tmp_path) == []  # noqa: PTH208  # Path's own is no list
