"""Durations and times as people read them."""

import pytest

from semel_console.insight.texts import duration_text, time_text


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_500, "1.5 s"),
        (61_000, "1 min 1 s"),
        (7_260_000, "2 h 1 min"),
    ],
)
def test_durations_have_the_units_that_suit_them(duration_ms: int, text: str) -> None:
    assert duration_text(duration_ms) == text


def test_times_are_in_utc_and_zero_is_none() -> None:
    assert time_text(1_700_000_000_000) == "2023-11-14 22:13:20Z"
    assert time_text(0) is None
