"""Writes past the page cache, and what replaces them where there are none."""

import errno
import fcntl
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

import pytest
from payloads_harness import BLOCK

from semel_runtime.journal.sqlite.payloads import direct_writes
from semel_runtime.journal.sqlite.payloads.direct_writes import BlockBuffer
from semel_runtime.journal.sqlite.payloads.payload_files import PayloadWriter, read_payloads

MEGABYTE = 1 << 20
PAYLOADS = [os.urandom(size) for size in (1, BLOCK, 3 * BLOCK - 1)]


def written(folder: Path) -> Sequence[bytes]:
    """Write the payloads in two appends, and return the payloads that a reader gets."""
    writer = PayloadWriter(folder, file_bytes=MEGABYTE)
    places = [*writer.write(PAYLOADS), *writer.write(PAYLOADS)]
    writer.close()
    return list(read_payloads(folder, places))


def is_direct(folder: Path) -> bool:
    """Return whether files of a folder can be written to past the page cache."""
    with (folder / "tried").open("wb") as file:
        return direct_writes.write_past_cache(file.fileno())


def failing(number: int, *, first: int) -> Callable[..., int]:
    """Return a pwrite whose first calls fail."""
    write, left = os.pwrite, iter([True] * first)

    def pwrite(descriptor: int, data: memoryview, at: int) -> int:
        if next(left, False):
            raise OSError(number, os.strerror(number))
        return write(descriptor, data, at)

    return pwrite


@pytest.mark.parametrize(
    "sizes",
    [(), (0,), (1,), (MEGABYTE,), (MEGABYTE + 1,), (5, 0, MEGABYTE - 5, 3 * MEGABYTE, 7)],
)
def test_blocks_have_all_bytes_and_zeros_behind_them(sizes: Sequence[int]) -> None:
    payloads = [os.urandom(size) for size in sizes]
    blocks = [bytes(view) for view in BlockBuffer().blocks(payloads)]
    assert all(len(some) % BLOCK == 0 for some in blocks)
    size_bytes = sum(sizes)
    assert b"".join(blocks) == b"".join(payloads) + bytes(-size_bytes % BLOCK)


def test_a_payload_goes_past_the_page_cache_where_it_can(tmp_path: Path) -> None:
    flags: list[int] = []
    write = os.pwrite

    def pwrite(descriptor: int, data: memoryview, at: int) -> int:
        flags.append(fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT)
        return write(descriptor, data, at)

    with mock.patch.object(os, "pwrite", pwrite):
        assert written(tmp_path) == PAYLOADS * 2
    assert [flag != 0 for flag in flags] == [is_direct(tmp_path)] * 2


def test_a_file_system_without_such_writes_gets_the_same_bytes(tmp_path: Path) -> None:
    call = fcntl.fcntl

    def fcntl_(descriptor: int, command: int, flags: int = 0) -> int:
        if command == fcntl.F_SETFL and flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return call(descriptor, command, flags)

    with mock.patch.object(fcntl, "fcntl", fcntl_):
        assert not is_direct(tmp_path)
        assert written(tmp_path) == PAYLOADS * 2


def test_a_system_without_such_writes_gets_the_same_bytes(tmp_path: Path) -> None:
    with mock.patch.object(direct_writes, "_DIRECT", None):
        assert not is_direct(tmp_path)
        assert written(tmp_path) == PAYLOADS * 2


def test_a_disk_with_larger_blocks_is_written_to_through_the_page_cache(tmp_path: Path) -> None:
    with (
        mock.patch("semel_runtime.journal.sqlite.payloads.payload_files.write_past_cache") as past,
        mock.patch.object(os, "pwrite", failing(errno.EINVAL, first=1)),
    ):
        past.side_effect = lambda _descriptor, *, wanted=True: wanted
        assert written(tmp_path) == PAYLOADS * 2
    assert [call.kwargs for call in past.call_args_list] == [{}, {"wanted": False}]


@pytest.mark.parametrize(
    ("number", "first"), [(errno.ENOSPC, 1), (errno.EIO, 1), (errno.EINVAL, 2)]
)
def test_any_other_failure_of_a_write_is_raised(tmp_path: Path, number: int, first: int) -> None:
    with (
        mock.patch.object(os, "pwrite", failing(number, first=first)),
        pytest.raises(OSError, match=os.strerror(number)),
    ):
        written(tmp_path)


@pytest.mark.parametrize("direct", [True, False])
def test_a_file_that_can_grow_no_more_is_an_error_and_no_endless_loop(
    tmp_path: Path, *, direct: bool
) -> None:
    write, room = os.pwrite, 2 * BLOCK + 100

    def pwrite(descriptor: int, data: memoryview, at: int) -> int:
        if at >= room:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return min(write(descriptor, data, at), room - at)

    def past(_: int, *, wanted: bool = True) -> bool:
        return wanted and direct

    with (
        mock.patch("semel_runtime.journal.sqlite.payloads.payload_files.write_past_cache", past),
        mock.patch.object(os, "pwrite", pwrite),
        pytest.raises(OSError, match=os.strerror(errno.EFBIG)),
    ):
        written(tmp_path)
