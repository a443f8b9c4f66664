"""The order of test files: Spark's, the long ones, the quick ones."""

from file_scheduling import turn


def test_spark_comes_first_and_quick_files_come_last() -> None:
    turns = [
        turn("pipeline/tests/test_example.py::test_a", is_long=True),
        turn("pipeline/tests/test_options.py::test_a", is_long=False),
        turn("cli/tests/test_group_commands.py::test_a", is_long=True),
        turn("tests/test_tidy.py::test_a", is_long=True),
        turn("tests/access/test_every_rpc.py::test_a", is_long=False),
    ]
    assert turns == [0, 0, 1, 1, 2]
