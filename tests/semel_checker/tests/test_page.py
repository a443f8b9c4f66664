"""docs/internals/verification.md tells each rule, and where it is checked."""

from pathlib import Path

import pytest
import semel_checker
from semel_checker.violations import SENTENCES, Rule

FOLDER = Path(semel_checker.__file__).parent
PAGE = FOLDER.parent.parent / "docs" / "internals" / "verification.md"


@pytest.mark.parametrize("rule", list(Rule))
def test_the_page_has_each_rule_with_its_modules(rule: Rule) -> None:
    assert row(rule) in PAGE.read_text("utf-8").splitlines()


def row(rule: Rule) -> str:
    """Return a rule's line in the page's table."""
    checkers = sorted(
        path.stem
        for path in FOLDER.glob("*.py")
        if f"Rule.{rule}," in path.read_text("utf-8") and path.stem != "violations"
    )
    return f"| {rule} | {SENTENCES[rule]} | {', '.join(f'`{name}`' for name in checkers)} |"
