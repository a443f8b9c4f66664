"""Patterns of users: what Python's engine says, without what it does for hours."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semel_common.errors import InvalidRequestError
from semel_coordinator.transactions.rpc.id_patterns import pattern


def matches(text: str, name: str) -> bool:
    compiled = pattern("pattern", text)
    assert compiled is not None
    return compiled(name)


characters = st.sampled_from("ab-_1.")
atoms = st.one_of(
    characters.map(re.escape),
    st.sampled_from([".", r"\d", r"\W", r"\s", "[ab]", "[^a1]", "[a-c-]", r"[\w.]", "[]a]"]),
)
repeats = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,2}", "{0,}", "*?", "+?"])
texts = st.recursive(
    st.builds("".join, st.lists(st.builds(str.__add__, atoms, repeats), max_size=4)),
    lambda inner: st.one_of(
        st.builds("({}){}".format, inner, repeats),
        st.builds("(?:{})".format, inner),
        st.builds("{}|{}".format, inner, inner),
        st.builds(str.__add__, inner, inner),
    ),
    max_leaves=4,  # Python's engine must come to an end.
)


@settings(max_examples=150)
@given(texts.filter(bool), st.lists(st.text("ab-_1. ", max_size=5), max_size=6))
def test_what_matches_is_what_pythons_engine_says(text: str, names: list[str]) -> None:
    expected = [re.fullmatch(text, name) is not None for name in names]
    assert [matches(text, name) for name in names] == expected


@pytest.mark.parametrize(
    ("text", "fits", "does_not"),
    [
        ("orders-.*", "orders-7", "my-orders-7"),
        ("^app$", "app", "apps"),
        (r"cost\$", "cost$", "cost"),
        ("", None, None),
        ("a||b", "", "ab"),
        (".", "a", "\n"),
        ("[a-]", "-", "b"),
        (r"[\]x]", "]", "y"),
        ("x{3}", "xxx", "xx"),
    ],
)
def test_patterns_match_whole_names(text: str, fits: str | None, does_not: str | None) -> None:
    if fits is None or does_not is None:
        assert pattern("pattern", text) is None
        return
    assert matches(text, fits)
    assert not matches(text, does_not)


def test_what_is_remembered_is_bounded() -> None:
    compiled = pattern("pattern", "(a|.)*b")
    assert compiled is not None
    names = [chr(0x4E00 + number) * 2 + "b" for number in range(10_500)]
    assert all(compiled(name) for name in names + names[:5])


@pytest.mark.parametrize("text", ["(a+)+b", "(a|a)*b", "(.*a){20}", ".*.*.*.*.*.*b", "(a?){40}b"])
def test_no_pattern_takes_long(text: str) -> None:
    """Each of these would keep an engine that goes back and forth busy for years."""
    assert not matches(text, "a" * 254 + "c")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a(b", r"a \( without its \)"),
        ("a)b", r"a \) without its \("),
        ("*a", r"a \* in this place"),
        ("a**", "a repetition of a repetition"),
        ("a^b", r"a \^ in this place"),
        ("a{2,1}", "a repetition from 2 to 1 times"),
        ("a{x}", "a repetition 'x' times"),
        ("a{101}", "a repetition '101' times"),
        ("a{2", "its end"),
        ("[ab", "its end"),
        ("[b-a]", "a range from b to a"),
        (r"[a-\d]", r"a range from a to \\"),
        ("a\\", "its end"),
        (r"(a)\1", r"\\1, at character"),
        (r"\bword", r"\\b, at character"),
        ("(?=a)", "a group of a special kind"),
        ("(a{90}){90}", "more than 100 states"),
        ("((x{0}){90}){90}", "more than 1000 parts"),
        ("(" * 21 + ")" * 21, "more than 20 groups within one another"),
        ("a" * 256, "has 256 characters"),
    ],
)
def test_a_pattern_that_cannot_be_used_says_why(text: str, problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        pattern("pattern", text)
