"""When an open transaction is due."""

import pytest

from semel_runtime.participant.inquiry import InquiryTimes

TIMES = InquiryTimes(interval_ms=1_000, superseded_delay_ms=10)


@pytest.mark.parametrize(
    ("now_ms", "superseded_ms", "is_due"),
    [
        pytest.param(5_999, None, False, id="younger than the interval"),
        pytest.param(6_000, None, True, id="as old as the interval"),
        pytest.param(4_999, None, True, id="begun after now: the clock went back"),
        pytest.param(5_109, 5_100, False, id="superseded just now"),
        pytest.param(5_110, 5_100, True, id="superseded for a while"),
        pytest.param(5_099, 5_100, True, id="superseded after now: the clock went back"),
        pytest.param(6_000, 5_999, True, id="superseded just now, but old"),
    ],
)
def test_what_is_due(now_ms: int, superseded_ms: int | None, is_due: bool) -> None:
    assert TIMES.is_due(now_ms=now_ms, start_ms=5_000, superseded_ms=superseded_ms) == is_due
