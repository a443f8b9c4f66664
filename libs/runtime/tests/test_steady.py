"""Steady ticks: after a start, a pause or a jump of the clock, one tick is let pass."""

from semel_runtime.steady import SteadyTicks


def test_the_first_tick_of_a_process_is_not_steady() -> None:
    ticks = SteadyTicks(interval_ms=10)
    assert [ticks.is_steady(now_ms) for now_ms in (1_000, 1_010, 1_020)] == [False, True, True]


def test_after_a_pause_one_tick_is_let_pass() -> None:
    ticks = SteadyTicks(interval_ms=10)
    answers = [ticks.is_steady(now_ms) for now_ms in (1_000, 1_020, 1_041, 1_051)]
    assert answers == [False, True, False, True]


def test_a_clock_that_went_back_is_a_pause_too() -> None:
    ticks = SteadyTicks(interval_ms=10)
    assert [ticks.is_steady(now_ms) for now_ms in (1_000, 999, 1_009)] == [False, False, True]
