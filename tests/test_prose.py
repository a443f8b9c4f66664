"""The project's prose: every clause names its subject."""

import pytest
from prose import clauses, nounless


@pytest.mark.timeout(300)  # It reads and parses the whole tree.
def test_every_clause_has_a_noun_for_its_subject() -> None:
    found = "\n".join(nounless())
    assert not found, f"name the subject of each clause:\n{found}"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The broker answers after the batch is durable.", 0),
        ("Whoever waits for it, and somebody else", 2),
        ("of what it has read", 1),
        ("a record of what\nis stored", 1),
        ("the name of who showed it, for who wants that", 2),
        ("Who is? An amendment.", 0),
    ],
)
def test_a_clause_without_a_noun_is_found(text: str, count: int) -> None:
    assert clauses(text) == count
