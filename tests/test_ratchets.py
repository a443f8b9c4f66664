"""Limits of size and of prose: modules of a folder, and clauses without a noun in an area.

The numbers of clauses only fall: a change that lowers one lowers it here too.
"""

from collections import Counter
from pathlib import Path

import pytest
from prose import clauses, nounless_by_area
from source_tree import modules

# The first test reads and parses the whole tree.
pytestmark = pytest.mark.timeout(300)

NOUNLESS = {
    "sdk": 1,
    "libs": 6,
    "services": 1,
    "cli": 0,
    "pipeline": 0,
    "tests": 11,
    "bench": 4,
    "examples": 0,
    "tools": 0,
    "docs": 17,
}
"""Clauses without a noun (tests/prose.py), by area."""

MODULES_MAX = 20
"""Modules in one source folder."""


@pytest.mark.parametrize("area", NOUNLESS)
def test_the_clauses_without_a_noun_become_fewer(area: str) -> None:
    check_ratchet(f"clauses without a noun in {area}", nounless_by_area()[area], NOUNLESS[area])


def test_every_area_with_a_clause_without_a_noun_has_a_number() -> None:
    assert nounless_by_area().keys() <= NOUNLESS.keys()


def test_a_source_folder_has_few_modules() -> None:
    crowded = {
        folder: count for folder, count in modules_by_folder().items() if count > MODULES_MAX
    }
    assert crowded == {}, f"more than {MODULES_MAX} modules; make folders of the parts: {crowded}"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The broker answers after the batch is durable.", 0),
        ("Whoever waits for it, and somebody else", 2),
        ("of what it has read", 1),
        ("a record of what\nis stored", 1),
        ("Who is? An amendment.", 0),
    ],
)
def test_a_clause_without_a_noun_is_counted(text: str, count: int) -> None:
    assert clauses(text) == count


def check_ratchet(what: str, count: int, limit: int) -> None:
    """Fail unless a count is exactly its limit."""
    assert count <= limit, (
        f"{what}: {count}, more than {limit}; name the subject of each new clause"
    )
    assert count == limit, f"{what}: {count}, fewer than {limit}; lower the number in this file"


def modules_by_folder() -> Counter[str]:
    """Return how many hand-written modules each source folder has, packages apart."""
    return Counter(
        Path(module.path).parent.as_posix()
        for module in modules()
        if module.is_source and Path(module.path).name != "__init__.py"
    )
