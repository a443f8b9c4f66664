"""Whether a volume has room for a cluster."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from semel_local.errors import FolderError
from semel_local.layout import Role, Settings
from semel_local.volume import RESERVE_VARIABLE, Room, room_of

MIB = 1 << 20


def room(free_bytes: int) -> Room:
    return Room(folder=Path("/data"), free_bytes=free_bytes, reserve_bytes=64 * MIB)


def test_a_volume_without_room_is_refused_with_the_need_and_the_setting() -> None:
    room(80 * MIB).check_new_cluster()
    with pytest.raises(FolderError) as refusal:
        room(80 * MIB - 1).check_new_cluster()
    assert str(refusal.value) == (
        "the volume of /data is too small for a cluster: 83,886,079 bytes are free, and a new"
        " cluster wants 83,886,080, of which 67,108,864 are its reserve"
        " (SEMEL_DISK_RESERVE_BYTES); choose a folder on a larger volume, or set"
        " SEMEL_DISK_RESERVE_BYTES to a smaller number"
    )


def test_a_small_volume_is_warned_of() -> None:
    assert room(5_000 * MIB).warning() == ""
    assert "stores about 1,048,576 bytes before" in room(65 * MIB).warning()
    assert "stores nothing new until you delete records" in room(64 * MIB).warning()


def test_the_reserve_is_that_of_the_services(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there"
    assert reserve_of(folder, {}, {}) == 64 * MIB
    environment = {RESERVE_VARIABLE: "5"}
    assert reserve_of(folder, {}, environment) == 5
    assert reserve_of(folder, {Role.BROKER: {"disk_reserve_bytes": 7}}, environment) == 7
    assert room_of(folder, {}, {"SEMEL_JOURNAL_URL": "postgresql://h/db"}) is None


def reserve_of(folder: Path, settings: Settings, environment: Mapping[str, str]) -> int:
    found = room_of(folder, settings, environment)
    assert found is not None
    assert found.free_bytes > 0
    return found.reserve_bytes
