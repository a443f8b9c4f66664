"""Steady ticks: after a start, a pause or a jump of the clock, some ticks are let pass."""

from semel_runtime.process.pause_detector import SteadyTicks


def test_the_first_tick_of_a_process_is_not_steady() -> None:
    ticks = SteadyTicks(interval_ms=10)
    assert [ticks.is_steady(now_ms, 0) for now_ms in (1_000, 1_010, 1_020)] == [False, True, True]


def test_after_a_pause_one_tick_is_let_pass() -> None:
    ticks = SteadyTicks(interval_ms=10)
    answers = [ticks.is_steady(now_ms, 0) for now_ms in (1_000, 1_020, 1_041, 1_051)]
    assert answers == [False, True, False, True]


def test_a_clock_that_went_back_is_a_pause_too() -> None:
    ticks = SteadyTicks(interval_ms=10)
    assert [ticks.is_steady(now_ms, 0) for now_ms in (1_000, 999, 1_009)] == [False, False, True]


def test_what_is_under_way_is_given_time_to_come_however_short_the_ticks_are() -> None:
    ticks = SteadyTicks(interval_ms=10, settling_ms=25)
    times = (1_000, 1_010, 1_020, 1_030, 9_000, 9_010, 9_020, 9_030, 9_040)
    answers = [ticks.is_steady(now_ms, 0) for now_ms in times]
    assert answers == [False, False, False, True, False, False, False, True, True]


def test_a_jump_while_it_settles_begins_it_again() -> None:
    ticks = SteadyTicks(interval_ms=10, settling_ms=20)
    answers = [ticks.is_steady(now_ms, 0) for now_ms in (1_000, 1_010, 9_000, 9_010, 9_020)]
    assert answers == [False, False, False, False, True]


def test_a_clock_that_was_set_and_set_right_between_two_ticks_begins_it_again_too() -> None:
    ticks = SteadyTicks(interval_ms=10, settling_ms=20)
    seen = ((1_000, 4), (1_010, 4), (1_020, 4), (1_030, 6), (1_040, 6), (1_050, 6))
    answers = [ticks.is_steady(now_ms, jumps) for now_ms, jumps in seen]
    assert answers == [False, False, True, False, False, True]
