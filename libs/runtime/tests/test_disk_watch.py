"""A disk that is nearly full: told once when it begins, and once when it is over."""

from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
import structlog

from semel_runtime.disk_watch import DiskWatch
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.volume import MemoryVolume

RESERVE_BYTES = 1_000


@pytest.fixture
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    with structlog.testing.capture_logs() as logs:
        yield logs


def test_each_change_is_told_once(logs: list[MutableMapping[str, Any]]) -> None:
    volume = MemoryVolume()
    journal = MemoryJournal(volume, disk_reserve_bytes=RESERVE_BYTES)
    watch = DiskWatch(journal, Path("/data"), reserve_bytes=RESERVE_BYTES)
    for free_bytes in (5_000, 900, 800, 5_000, 5_000, 0):
        volume.free_bytes = free_bytes
        watch.look()
    assert [(each["event"].partition(":")[0], each["free_bytes"]) for each in logs] == [
        ("disk is nearly full", 900),
        ("disk has room again", 5_000),
        ("disk is nearly full", 0),
    ]
    assert {(each["folder"], each["reserve_bytes"]) for each in logs} == {("/data", RESERVE_BYTES)}
