"""The measurements, if there is nothing to measure, say so and give no figure."""

import sys
from pathlib import Path

import pytest
from bench import console, deletion
from bench.__main__ import main
from bench.clients.arrivals import arrivals
from bench.database import _WARM_UP, Laps
from bench.growth.curve import all_series, values
from bench.growth.curves import history


async def test_a_deletion_that_does_not_end_gives_no_figure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deletion, "WINDOW_S", 0.01)
    monkeypatch.setattr(deletion, "WINDOWS", 1)
    monkeypatch.setattr(deletion, "DELETION_MAX_S", 0.0)
    with pytest.raises(TimeoutError, match="of the space is taken after 0 s"):
        await deletion.deletion(megabytes=1)


def test_a_reader_waiting_for_a_record_is_told_when_it_arrived() -> None:
    records = iter([False, True, True])
    with arrivals(lambda: next(records, False)) as next_arrival:
        first = next_arrival()
        assert first <= next_arrival()


def test_a_reader_waiting_for_a_record_is_told_why_none_comes() -> None:
    records: list[bool] = []
    with pytest.raises(IndexError, match="pop from empty"), arrivals(records.pop) as next_arrival:
        next_arrival()


def test_laps_are_timed_after_the_warm_up_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = iter([100.0, 103.0])  # of the first lap that counts, and of the end
    monkeypatch.setattr("bench.database.time.perf_counter", lambda: next(now_s))
    laps = Laps(transactions=6)
    last = [laps.lap() or laps.is_last for _ in range(_WARM_UP + 6)]
    assert last == [False] * (_WARM_UP + 5) + [True]
    assert laps.lap()
    assert laps.each_ms == 500


@pytest.mark.parametrize("option", ["--runs", "--brokers"])
def test_no_runs_and_no_brokers_are_refused(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "footprint", option, "0"])
    with pytest.raises(SystemExit):
        main()
    assert f"{option} is 0, less than 1" in capsys.readouterr().err


@pytest.mark.timeout(120)
async def test_the_console_is_measured_page_by_page() -> None:
    figures = await console.measured(transactional_ids=20, partitions=60, groups=8)
    names = [each.name for each in figures]
    assert names[0] == "console start"
    assert [each for each in names if each.startswith("/")] == list(console.PAGES)
    assert all(each.value > 0 for each in figures)
    assert all(each.value <= 64 for each in figures if each.unit == "KiB")


@pytest.mark.timeout(120)
async def test_the_history_of_ended_transactions_is_measured_at_each_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.growth.curves.history.structlog.configure", lambda **_: None)
    sizes = (1_000, 2_000)
    points = [point async for point in history.history(sizes, tmp_path)]
    assert [point.size for point in points] == list(sizes)
    assert [series.operation for series in all_series(points)] == [
        "start",
        "the last 1,000",
        "a search without a find",
        "memory",
        "an entry",
    ]
    by_operation = {series.operation: dict(values(points, series)) for series in all_series(points)}
    assert all(number > 0 for each in by_operation.values() for number in each.values())
    memory = by_operation["memory"]
    assert 1.2 < memory[2_000] / memory[1_000] < 3
    assert all(50 < number < 1_000 for number in by_operation["an entry"].values())
