"""The order of test files: Spark's, the long ones, the quick ones; and which go together."""

from file_scheduling import SERVERS, TREE, turn, unit
from source_tree import ROOT


def test_spark_comes_first_and_quick_files_come_last() -> None:
    turns = [
        turn("pipeline/tests/test_example.py::test_a", is_long=True),
        turn("pipeline/tests/test_options.py::test_a", is_long=False),
        turn("cli/tests/test_group_commands.py::test_a", is_long=True),
        turn("tests/test_tidy.py::test_a", is_long=True),
        turn("tests/access/test_every_rpc.py::test_a", is_long=False),
    ]
    assert turns == [0, 0, 1, 1, 2]


def test_files_that_parse_the_source_tree_are_one_unit_and_other_files_their_own() -> None:
    units = [unit(f"{file}::test_a") for file in TREE]
    assert set(units) == {"source tree"}
    assert all((ROOT / file).is_file() for file in TREE)
    assert unit("tests/test_images.py::test_a[x::y]") == "tests/test_images.py"
    assert unit("pipeline/tests/sink/test_a.py::test_a") == unit("pipeline/tests/test_b.py::test_b")


def test_files_that_share_a_database_server_are_one_unit() -> None:
    for folder in SERVERS:
        assert (ROOT / folder / "conftest.py").is_file()
        assert unit(f"{folder}test_a.py::test_a") == unit(f"{folder}test_b.py::test_b") == folder
