"""Every scenario of the table is shown by a test, or says why it does not apply."""

import scenarios


def test_every_scenario_is_shown_or_does_not_apply() -> None:
    known = {number for chapter in scenarios.chapters().values() for number in chapter}
    answered = set(scenarios.shown()) | set(scenarios.reasons())
    assert known == answered, f"without a test: {known - answered}; unknown: {answered - known}"


def test_the_page_of_scenarios_is_fresh() -> None:
    assert scenarios.PAGE.read_text() == scenarios.page(), "run `make docs`"
