"""Exploring finds nothing in the machines as they are, and a planted defect by a short trace."""

import pytest
from defects import planted

from exploration.search import explore

STATES = 40_000
SECONDS_MAX = 50.0


@pytest.mark.slow
def test_no_order_of_events_breaks_anything() -> None:
    found = explore(seconds=SECONDS_MAX, states_max=STATES)
    assert not found.violation, "\n".join((found.violation, *found.trace))
    assert found.states >= STATES
    assert found.depth >= 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("defect", "events_max"),
    [
        ("zombie-told-the-epoch", 12),
        ("forgotten-early", 12),
        ("ongoing-for-ever", 8),
        ("group-without-fence", 11),
    ],
)
def test_a_planted_defect_has_a_short_trace(defect: str, events_max: int) -> None:
    with planted(defect):
        found = explore(seconds=SECONDS_MAX, states_max=STATES)
    assert found.violation
    assert 0 < len(found.trace) <= events_max
