"""Patterns of transactional ids: whole names, in linear time, with errors that name the fault."""

import re

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from semel_common.errors import InvalidRequestError
from semel_coordinator.transactions.rpc.operators.id_patterns import IdPattern, pattern


def matches(text: str, name: str) -> bool:
    return compiled(text).matches(name)


def compiled(text: str) -> IdPattern:
    found = pattern("pattern", text)
    assert found is not None
    return found


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


@given(text=st.text("ab .*\\\\([{|^$-\n€", min_size=1), before=st.text("ab*"), after=st.text("a\n"))
def test_a_pattern_that_asks_for_a_text_needs_no_engine(text: str, before: str, after: str) -> None:
    asked = f"(?s).*{re.escape(text)}.*"
    assert compiled(asked).names_at_once > compiled(".").names_at_once
    assert matches(asked, f"{before}{text}{after}")
    assert matches(asked, before) is (text in before)


@given(middle=st.text("ab.*|\\\\[]", max_size=4), name=st.text("ab.*|\\\\[]", max_size=6))
def test_a_pattern_that_asks_for_more_than_a_text_means_what_re2_says(
    middle: str, name: str
) -> None:
    asked = f"(?s).*{middle}.*"
    try:
        expected = re2.fullmatch(asked, name) is not None
    except re2.error:
        return
    assert matches(asked, name) is expected


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
