"""Markers of engines: the tests that get one, and the processes that other tests may start."""

import shutil
import subprocess
import sys

import engines
import pytest
from source_tree import ROOT


@pytest.mark.parametrize("path", [*engines.FOLDERS, *engines.FILES])
def test_each_folder_and_file_with_a_marker_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(
    ("path", "fixtures", "parameter", "expected"),
    [
        ("pipeline/tests/sink/test_sink_batch.py", [], None, {"spark"}),
        ("libs/runtime/tests/journal/test_conformance.py", ["engine"], "postgres", {"postgres"}),
        ("libs/runtime/tests/journal/test_conformance.py", ["engine"], "memory", set()),
        ("libs/runtime/tests/journal/test_postgres_loss.py", ["postgres"], None, {"postgres"}),
        ("libs/local/tests/test_processes.py", [], None, {"processes"}),
        ("libs/common/tests/test_batches.py", [], None, set()),
    ],
)
def test_a_test_is_marked_by_its_path_and_its_fixtures(
    path: str, fixtures: list[str], parameter: str | None, expected: set[str]
) -> None:
    assert engines.engines(path, fixtures, parameter) == expected


def test_a_test_without_a_marker_starts_no_process() -> None:
    with pytest.raises(RuntimeError, match="has no marker of an engine: add its folder, file"):
        subprocess.run([sys.executable, "-c", ""], check=True)


def test_a_test_without_a_marker_may_ask_git() -> None:
    git = shutil.which("git")
    assert git
    subprocess.run([git, "--version"], check=True, capture_output=True)
