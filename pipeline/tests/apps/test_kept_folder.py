"""Folders that all processes of a user share: one for each purpose, and of no other user."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from semel_pipelines.kept_folder import kept_folder

HOMES = "import semel_pipelines.java as j, semel_pipelines.spark_home as s;"
HOMES += "print(s.spark_home(), j.java_home({'PATH': ''}))"


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_processes_that_start_spark_leave_no_folder_each(temporary: Path) -> None:
    def homes() -> str:
        command = (sys.executable, "-c", HOMES)
        environment = {"TMPDIR": str(temporary)}
        return subprocess.run(
            command, env=environment, text=True, stdout=subprocess.PIPE, check=True
        ).stdout

    assert homes() == homes()
    assert len(list(temporary.iterdir())) == 2
    (java,) = temporary.glob("semel-java-*/bin/java")
    assert java.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in java.parent.iterdir()] == ["java"]


def test_other_things_have_other_folders() -> None:
    assert len({kept_folder("a", "b"), kept_folder("a", "c"), kept_folder("b", "b")}) == 3
    assert kept_folder("a", "b") == kept_folder("a", "b")


def test_a_folder_that_another_user_can_write_to_is_not_used() -> None:
    folder = kept_folder("a", "b")
    folder.chmod(0o777)
    assert kept_folder("a", "b") != folder


def test_a_link_that_lies_there_is_not_followed(tmp_path: Path) -> None:
    folder = kept_folder("a", "b")
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert kept_folder("a", "b") not in {folder, tmp_path}
