"""Services get hostile messages and frames: none breaks a handler, and nobody else notices.

`make fuzz` sends as many as wanted.
"""

import pytest

from fuzz.attack import attack, attack_from_within

MESSAGES = 20_000

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("seed", range(5))
def test_no_client_breaks_a_service_or_hinders_another(seed: int) -> None:
    result = attack(messages=MESSAGES, seed=seed)
    assert not result.violations, "\n".join(result.violations)
    assert sum(result.answers.values()) == MESSAGES
    assert result.answers["OK"] > MESSAGES // 10
    assert len(result.answers) > 10
    assert result.frames > MESSAGES // 50


def test_no_service_breaks_another() -> None:
    result = attack_from_within(messages=MESSAGES, seed=0)
    assert not result.violations, "\n".join(result.violations)
    assert sum(result.answers.values()) == MESSAGES
