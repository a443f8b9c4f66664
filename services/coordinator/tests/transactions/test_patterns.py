"""Patterns of transactional ids: whole names, in linear time, with errors that name the fault."""

import pytest

from semel_common.errors import InvalidRequestError
from semel_coordinator.transactions.rpc.operators.id_patterns import pattern


def matches(text: str, name: str) -> bool:
    compiled = pattern("pattern", text)
    assert compiled is not None
    return compiled(name)


def test_an_empty_pattern_is_none() -> None:
    assert pattern("pattern", "") is None


@pytest.mark.parametrize(
    ("text", "fits", "does_not"),
    [
        ("orders-.*", "orders-7", "my-orders-7"),
        ("^app$", "app", "apps"),
        (r"cost\$", "cost$", "cost"),
        ("a||b", "", "ab"),
        (".", "€", "\n"),
        ("x{3}", "xxx", "xx"),
        (r"app-\d+", "app-17", "app-"),
    ],
)
def test_patterns_match_whole_names(text: str, fits: str, does_not: str) -> None:
    assert matches(text, fits)
    assert not matches(text, does_not)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", ["(a+)+b", "(a|a)*b", "(.*a){20}", ".*.*.*.*.*.*b", "(a?){40}b"])
def test_no_pattern_takes_long(text: str) -> None:
    """Each of these would keep a backtracking engine busy for years."""
    assert not matches(text, "a" * 254 + "c")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a(b", r"missing \)"),
        ("a)b", r"unexpected \)"),
        ("*a", r"no argument for repetition operator: \*"),
        ("a{2,1}", "invalid repetition size"),
        ("[ab", r"missing \]"),
        ("[b-a]", "invalid character class range: b-a"),
        (r"(a)\1", r"invalid escape sequence: \\1"),
        ("(?=a)", "invalid perl operator"),
        (r"(\pL*a){60}", "pattern too large"),
        ("a" * 256, "has 256 characters"),
    ],
)
def test_a_faulty_pattern_is_named_with_its_fault(text: str, problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        pattern("pattern", text)
