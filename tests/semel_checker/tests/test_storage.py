"""A history is stored as JSON lines, and comes back as it was."""

from pathlib import Path

import pytest
from semel_checker.storage import from_lines, read_history, to_lines, write_history
from semel_checker.tests.test_random_histories import Run


@pytest.mark.parametrize("seed", range(5))
def test_a_stored_history_comes_back(tmp_path: Path, seed: int) -> None:
    history = Run(seed).events()
    write_history(tmp_path / "history.jsonl", history)
    assert read_history(tmp_path / "history.jsonl") == history


def test_a_history_is_stored_as_the_same_bytes() -> None:
    assert list(to_lines(Run(7).events())) == list(to_lines(Run(7).events()))


def test_a_line_is_readable() -> None:
    first = next(iter(to_lines(Run(7).events())))
    assert first == (
        '{"type":"Event","at_ms":1,"process":"harness","what":{"type":"RunStarted","name":"a test",'
        '"transaction_timeout_ms":1000,"slack_ms":100,"progress_ms":1000}}'
    )


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "{}",
        '{"type":"Event","at_ms":"1","process":"p","what":{"type":"FaultsOver"}}',
        '{"type":"Event","at_ms":1,"process":"p","what":{"type":"Nothing"}}',
        '{"type":"Event","at_ms":1,"process":"p","what":{"type":"FaultsOver","more":1}}',
        '{"type":"Event","at_ms":1,"process":"p","what":{"type":"Returned","op":1,"outcome":"YES"}}',
        "no JSON",
    ],
)
def test_a_malformed_event_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="line 1 is no event"):
        from_lines([line])
