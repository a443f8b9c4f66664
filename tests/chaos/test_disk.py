"""Disks that fail on command: the errors that a process sees."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.disk import Disk, compile_library

STORE = """
import json, os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
def attempt(sql):
    try:
        database.execute(sql)
        return "stored"
    except sqlite3.OperationalError as error:
        return str(error)
told = [attempt("PRAGMA synchronous = FULL"), attempt("CREATE TABLE IF NOT EXISTS t (x)")]
told = [attempt("INSERT INTO t VALUES (1)"), os.statvfs(os.path.dirname(sys.argv[1])).f_bavail > 0]
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = compile_library(tmp_path_factory.mktemp("library"))
    if found is None:
        pytest.skip("no C compiler, or no Linux: there are no faults of disks")
    return found


@pytest.mark.parametrize(
    ("break_disk", "told", "counted"),
    [
        (lambda _: None, ["stored", True], "none"),
        (Disk.fill, ["database or disk is full", False], "refused_writes"),
        (Disk.fail_syncs, ["disk I/O error", True], "failed_syncs"),
        (lambda disk: disk.delay_syncs(1), ["stored", True], "slow_syncs"),
    ],
    ids=["well", "full", "sync", "slow"],
)
def test_a_disk_fails_as_it_is_told(
    library: Path,
    tmp_path: Path,
    break_disk: Callable[[Disk], None],
    told: list[object],
    counted: str,
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    disk = Disk(library, tmp_path / "control", data)
    assert store(disk, data) == ["stored", True]
    break_disk(disk)
    assert store(disk, data) == told
    failed = disk.failed._asdict()
    assert {name for name, number in failed.items() if number} == {counted} - {"none"}
    disk.mend()
    assert store(disk, data) == ["stored", True]


def test_other_folders_are_well(library: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    disk = Disk(library, tmp_path / "control", tmp_path / "data")
    disk.fill()
    (tmp_path / "other").mkdir()
    assert store(disk, tmp_path / "other") == ["stored", True]


def store(disk: Disk, folder: Path) -> object:
    done = subprocess.run(
        (sys.executable, "-c", STORE, str(folder / "database")),
        env=os.environ | disk.environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)
