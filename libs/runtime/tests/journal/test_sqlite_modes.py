"""The files of a journal: its owner's alone, whatever the umask, and whatever they were before."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from semel_runtime.journal.sqlite import SqliteJournal
from semel_runtime.journal_refusal import refuse


def modes(folder: Path) -> dict[str, str]:
    return {
        path.name: f"{stat.S_IMODE(path.stat().st_mode):o}" for path in (folder, *folder.iterdir())
    }


@pytest.fixture(autouse=True)
def same_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def change_mode(path: Path, mode: int) -> None:
    path.chmod(mode)


async def work(folder: Path) -> dict[str, str]:
    """Open a journal and write to it; returns the modes of all files meanwhile."""
    async with await SqliteJournal.open(folder, service="test") as journal:
        claim = await journal.claim("token")
        await journal.append(claim.next_offset, [b"record"])
        return modes(folder)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
async def test_a_new_journal_and_all_beside_it_are_its_owners_alone(
    tmp_path: Path, umask: int
) -> None:
    os.umask(umask)
    folder = tmp_path / "data"
    found = await work(folder)
    refuse(folder, "it is old")
    assert found == {
        "data": "700",
        "journal.db": "600",
        "journal.db-wal": "600",
        "journal.db-shm": "600",
        "journal.end": "600",
        "journal.lock": "600",
        "journal.log-1-0": "600",
        "journal.log-1-1": "600",
    }
    assert modes(folder)["refused"] == "600"


async def test_others_are_shut_out_of_a_journal_that_is_there_and_the_log_says_so(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data"
    await work(folder)
    change_mode(folder, 0o2775)  # As Kubernetes leaves it: the group's rights stay.
    for file in folder.iterdir():
        change_mode(file, 0o664)
    with structlog.testing.capture_logs() as logs:
        found = await work(folder)
    assert found == {
        "data": "2770",
        "journal.db": "660",
        "journal.db-wal": "660",
        "journal.db-shm": "660",
        "journal.end": "660",
        "journal.lock": "660",
        "journal.log-2-0": "600",
        "journal.log-2-1": "600",
    }
    told = {str(entry["path"]): (entry["mode_before"], entry["mode"]) for entry in logs}
    assert told[str(folder)] == ("2775", "2770")
    assert told[str(folder / "journal.db")] == ("0664", "0660")


async def test_a_folder_with_other_things_in_it_keeps_its_mode(tmp_path: Path) -> None:
    """A mistaken data_dir, such as a home folder, is not closed to its users."""
    (tmp_path / "foreign").touch()
    change_mode(tmp_path, 0o755)
    await work(tmp_path)
    found = await work(tmp_path)
    assert (found[tmp_path.name], found["foreign"]) == ("755", "644")
    assert found["journal.db"] == found["journal.db-wal"] == "600"
