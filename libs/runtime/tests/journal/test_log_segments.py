"""The files of a log: allocated at once, written in turn, never again while they are needed."""

import errno
import os
import stat
from pathlib import Path

import pytest

from semel_runtime.journal.log.segments import Segments, files_of, remove_logs

FILE_BYTES = 4_096
FRAME = b"f" * 1_024


@pytest.fixture
def segments(tmp_path: Path) -> Segments:
    made = Segments(tmp_path, 7, file_bytes=FILE_BYTES)
    assert made.make()
    return made


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_are_allocated_at_once_and_their_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    segments = Segments(tmp_path, 7, file_bytes=FILE_BYTES)
    assert not segments.is_made
    assert not segments.takes(1, stored=0)
    assert segments.make()
    os.umask(before)

    assert names(tmp_path) == ["journal.log-7-0", "journal.log-7-1"]
    for path in tmp_path.iterdir():
        status = path.stat()
        assert stat.S_IMODE(status.st_mode) == 0o600
        assert status.st_size == FILE_BYTES
        assert status.st_blocks * 512 >= FILE_BYTES
    segments.close()
    segments.close()


def test_frames_fill_one_file_and_then_the_other(tmp_path: Path, segments: Segments) -> None:
    for number in range(1, 9):
        frame = bytes([number]) * 1_024
        assert segments.takes(len(frame), stored=0)
        segments.write(frame, next_offset=number, stored=0)
    assert not segments.takes(1, stored=0)

    files = [path.read_bytes() for path in files_of(tmp_path, 7)]
    assert [file[::1_024] for file in files] == [bytes([1, 2, 3, 4]), bytes([5, 6, 7, 8])]
    segments.close()


def test_a_file_is_written_again_once_the_tables_have_all_of_it(
    tmp_path: Path, segments: Segments
) -> None:
    for number in range(1, 9):
        segments.write(FRAME, next_offset=number, stored=0)

    assert not segments.takes(len(FRAME), stored=3)
    assert segments.takes(len(FRAME), stored=4)
    segments.write(b"again" * 8, next_offset=9, stored=4)

    first, second = (path.read_bytes() for path in files_of(tmp_path, 7))
    assert first.startswith(b"again" * 8 + b"f")
    assert second == b"f" * FILE_BYTES
    assert segments.takes(FILE_BYTES - 40, stored=4)
    assert not segments.takes(FILE_BYTES - 39, stored=7)
    assert segments.takes(FILE_BYTES, stored=8)
    assert not segments.takes(FILE_BYTES + 1, stored=99)
    segments.close()


def test_a_name_that_is_there_gets_a_new_file(tmp_path: Path) -> None:
    """A process that was deposed may have the old one, and write to it."""
    (tmp_path / "journal.log-7-0").write_bytes(b"old")
    with (tmp_path / "journal.log-7-0").open("r+b") as deposed:
        segments = Segments(tmp_path, 7, file_bytes=FILE_BYTES)
        assert segments.make()
        deposed.write(b"late")
    assert (tmp_path / "journal.log-7-0").read_bytes() == bytes(FILE_BYTES)
    segments.close()


def test_logs_with_lower_numbers_are_removed_and_no_other_file(tmp_path: Path) -> None:
    for name in ("journal.log-6-0", "journal.log-7-1", "journal.log-10-0", "journal.log-x"):
        (tmp_path / name).touch()

    remove_logs(tmp_path, below=10)

    assert names(tmp_path) == ["journal.log-10-0", "journal.log-x"]
    assert [path.name for path in files_of(tmp_path, 10)] == ["journal.log-10-0"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_without_room_gets_no_file_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(*_: int) -> None:
        raise OSError(number, "full")

    segments = Segments(tmp_path, 7, file_bytes=FILE_BYTES)
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        assert not segments.make()
    assert names(tmp_path) == []
    assert not segments.is_made
    assert segments.make()
    segments.close()


def test_other_errors_are_raised_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: int) -> None:
        raise OSError(errno.EIO, "broken")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", broken)
        with pytest.raises(OSError, match="broken"):
            Segments(tmp_path, 7, file_bytes=FILE_BYTES).make()
    assert names(tmp_path) == []


def test_a_write_that_the_system_cuts_short_goes_on(
    tmp_path: Path, segments: Segments, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.pwrite
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda descriptor, data, at: write(descriptor, data[:7], at))
        segments.write(bytes(range(100)), next_offset=1, stored=0)
    first, _ = files_of(tmp_path, 7)
    assert first.read_bytes().startswith(bytes(range(100)))
    segments.close()
