"""Clocks notice when they are set."""

import time

import pytest

from semel_runtime.clock import JUMP_MS, SystemClock


def test_a_clock_counts_when_it_was_set_and_when_it_was_set_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SystemClock()
    right_ms = clock.now_ms()
    assert clock.jumps == 0

    with monkeypatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: (right_ms - 86_400_000) * 1_000_000)
        clock.now_ms()
        assert clock.jumps == 1
    assert clock.now_ms() >= right_ms
    assert clock.jumps == 2


def test_a_clock_that_is_led_to_the_right_time_little_by_little_has_not_jumped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SystemClock()
    started_ns = time.time_ns()
    for step in range(100):
        shift_ns = step * JUMP_MS * 500_000
        monkeypatch.setattr(time, "time_ns", lambda shift_ns=shift_ns: started_ns + shift_ns)
        clock.now_ms()
    assert clock.jumps == 0
