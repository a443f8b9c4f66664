"""The board in a folder: one process writes a task, and one other process takes it."""

from pathlib import Path
from random import Random

from chaos.board import FileBoard


def test_a_task_is_taken_once(tmp_path: Path) -> None:
    owner, worker = (FileBoard(tmp_path, "id", life=life) for life in ("owner", "worker"))
    owner.ask_for("handle", range(3))
    taken = [each.take(Random(1)) for each in (worker, owner, worker, owner)]
    assert sorted(filter(None, taken)) == [("handle", task) for task in range(3)]
    assert taken[-1] is None


def test_the_first_receipt_of_a_task_counts(tmp_path: Path) -> None:
    boards = [FileBoard(tmp_path, "id", life=life) for life in ("one", "two")]
    for board in boards:
        board.hand_in("handle", 1, f"by {board._life}")
    boards[1].hand_in("handle", 0, "by two")
    boards[1].hand_in("another", 2, "by two")
    assert boards[0].receipts("handle") == {0: "by two", 1: "by one"}


def test_the_last_version_that_any_process_noted_is_done(tmp_path: Path) -> None:
    boards = [FileBoard(tmp_path, "id", life=life) for life in ("one", "two")]
    assert boards[0].done == 0
    for board, version in zip(boards, (11, 9), strict=True):
        board.note_done(version)
    assert boards[1].done == 11
