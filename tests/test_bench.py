"""The measurements, if there is nothing to measure, say so and give no figure."""

import sys

import pytest
from bench import deletion
from bench.__main__ import main
from bench.clients.arrivals import arrivals


async def test_a_deletion_that_does_not_end_gives_no_figure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deletion, "WINDOW_S", 0.01)
    monkeypatch.setattr(deletion, "WINDOWS", 1)
    monkeypatch.setattr(deletion, "DELETION_MAX_S", 0.0)
    with pytest.raises(TimeoutError, match="of the file are there after 0 s"):
        await deletion.deletion(megabytes=1)


def test_who_waits_for_a_record_is_told_when_it_arrived() -> None:
    records = iter([False, True, True])
    with arrivals(lambda: next(records, False)) as next_arrival:
        first = next_arrival()
        assert first <= next_arrival()


def test_who_waits_for_a_record_is_told_why_none_comes() -> None:
    records: list[bool] = []
    with pytest.raises(IndexError, match="pop from empty"), arrivals(records.pop) as next_arrival:
        next_arrival()


@pytest.mark.parametrize("option", ["--runs", "--brokers"])
def test_no_runs_and_no_brokers_are_refused(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "footprint", option, "0"])
    with pytest.raises(SystemExit):
        main()
    assert f"{option} is 0, less than 1" in capsys.readouterr().err
