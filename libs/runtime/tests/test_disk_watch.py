"""A disk that is nearly full: told when it begins, each minute, and when it is over."""

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import structlog

from semel_runtime.process.disk_watch import DiskWatch
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.volume import MemoryVolume

RESERVE_BYTES = 1_000


@pytest.fixture
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    with structlog.testing.capture_logs() as logs:
        yield logs


def test_each_change_is_told_once(logs: list[MutableMapping[str, Any]]) -> None:
    watch, volume, _ = watched()
    for free_bytes in (5_000, 900, 800, 5_000, 5_000, 0):
        volume.free_bytes = free_bytes
        watch.look()
    assert [(log["event"].partition(":")[0], log["free_bytes"]) for log in logs] == [
        ("disk is nearly full", 900),
        ("disk has room again", 5_000),
        ("disk is nearly full", 0),
    ]
    assert (logs[0]["folder"], logs[0]["disk_reserve_bytes"]) == ("/memory", RESERVE_BYTES)


def test_a_shortage_that_lasts_is_told_once_a_minute(logs: list[MutableMapping[str, Any]]) -> None:
    watch, volume, clock = watched()
    volume.free_bytes = 0
    for now_s in (0.0, 59.0, 60.0, 61.0, 119.0, 121.0):
        clock[0] = now_s
        watch.look()
    assert len(logs) == 3


def watched() -> tuple[DiskWatch, MemoryVolume, list[float]]:
    volume, clock = MemoryVolume(), [0.0]
    journal = MemoryJournal(volume, disk_reserve_bytes=RESERVE_BYTES)
    return DiskWatch(journal, clock_s=lambda: clock[0]), volume, clock
