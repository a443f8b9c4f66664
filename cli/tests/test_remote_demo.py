"""`semel demo orders`, `application` and `income`: the main job on a cluster that is elsewhere."""

import subprocess
import sys

import pytest
from command_line import CommandLine


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_orders_come_in_once_and_their_income_is_exact(semel: CommandLine, bootstrap: str) -> None:
    assert "49,574 order lines" in semel("demo", "orders").err
    assert "0 order lines" in semel("demo", "orders").err
    application = subprocess.Popen(
        [sys.executable, "-m", "semel_cli", "demo", "application", "pizza-app-0", "-b", bootstrap]
    )
    try:
        checked = semel("demo", "income", "--format", "json")
    finally:
        application.kill()
        application.wait()
    assert checked.json == {
        "exact": True,
        "income": "817860.05",
        "expected_income": "817860.05",
        "lines": 49_574,
        "expected_lines": 49_574,
        "duplicates": 0,
        "losses": 0,
    }


def test_income_that_does_not_come_is_waited_for_no_longer_than_asked(semel: CommandLine) -> None:
    failed = semel("demo", "income", "--timeout", "0", status=1)
    assert "not all income is there after 0 s" in failed.err
