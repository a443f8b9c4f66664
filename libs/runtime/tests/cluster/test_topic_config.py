"""Options of topics: which there are, and which values they take."""

import pytest

from semel_common.errors import InvalidConfigError
from semel_runtime.cluster.topic_options import (
    DEFAULTS,
    OPTIONS,
    CleanupPolicy,
    TopicConfig,
    altered,
    options_named,
    topic_config,
)


def config(**values: str) -> TopicConfig:
    """Set options by their names with underscores."""
    given = {name.replace("_", "."): text for name, text in values.items()}
    return topic_config(altered((), set_=given))


def test_nothing_set_is_all_defaults() -> None:
    assert topic_config(()) == DEFAULTS


def test_every_default_may_be_set_and_is_the_default() -> None:
    for option in OPTIONS:
        if option.default:
            overrides = altered((), set_={option.name: option.default})
            assert topic_config(overrides) == DEFAULTS
    assert {option.field for option in OPTIONS} == set(TopicConfig.__struct_fields__)


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("delete", CleanupPolicy.DELETE),
        ("compact", CleanupPolicy.COMPACT),
        ("delete,compact", CleanupPolicy.COMPACT_DELETE),
        (" compact , delete ", CleanupPolicy.COMPACT_DELETE),
    ],
)
def test_a_policy_is_one_or_both_in_any_order(text: str, policy: CleanupPolicy) -> None:
    found = config(cleanup_policy=text).cleanup_policy
    assert found is policy
    assert (found.deletes, found.compacts) == ("delete" in text, "compact" in text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cleanup.policy", ""),
        ("cleanup.policy", "delete,keep"),
        ("retention.ms", "-2"),
        ("retention.ms", ""),
        ("retention.ms", "1e3"),
        ("retention.ms", "1_000"),
        ("retention.ms", "٣"),
        ("retention.ms", "9223372036854775808"),
        ("retention.ms", "9" * 5_000),
        ("retention.bytes", "1.5"),
        ("max.message.bytes", "1023"),
        ("max.message.bytes", "16777217"),
        ("min.cleanable.dirty.ratio", "1.01"),
        ("min.cleanable.dirty.ratio", "2"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("min.cleanable.dirty.ratio", "0.x"),
        ("segment.ms", "0"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name_and_value(name: str, text: str) -> None:
    with pytest.raises(InvalidConfigError) as refused:
        altered((), set_={name: text})
    assert name in refused.value.message
    assert refused.value.details["key"] == name
    assert text.startswith(refused.value.details["value"].removesuffix("…"))
    assert len(refused.value.message) < 200


@pytest.mark.parametrize("text", ["0", "1", "0.25", "1.0"])
def test_a_ratio_is_a_decimal_fraction(text: str) -> None:
    assert config(min_cleanable_dirty_ratio=text).min_cleanable_dirty_ratio == float(text)


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    for wrong in ({"retention": "5"}, {"x" * 900: "5"}):
        with pytest.raises(InvalidConfigError, match=r"no option .*: there are .*retention\.ms"):
            altered((), set_=wrong)
    with pytest.raises(InvalidConfigError, match="'nothing'"):
        altered((), set_={}, reset=["nothing"])
    with pytest.raises(InvalidConfigError, match="'nothing'"):
        options_named(["nothing"])


def test_lags_of_compaction_must_agree() -> None:
    with pytest.raises(InvalidConfigError, match=r"min\.compaction\.lag\.ms 5 is over .* 4"):
        config(min_compaction_lag_ms="5", max_compaction_lag_ms="4")


def test_an_option_cannot_be_both_set_and_reset() -> None:
    with pytest.raises(InvalidConfigError, match="both set and reset"):
        altered((), set_={"retention.ms": "5"}, reset=["retention.ms"])


def test_changes_leave_the_rest_and_values_are_written_in_one_way() -> None:
    first = altered((), set_={"segment.ms": " 007 ", "retention.ms": "5"})
    assert first == (("retention.ms", "5"), ("segment.ms", "7"))
    assert altered(first, set_={}, reset=["retention.ms", "retention.bytes"]) == first[1:]


def test_options_of_a_newer_release_are_passed_over() -> None:
    assert topic_config((("from.the.future", "1"), ("retention.ms", "5"))).retention_ms == 5


def test_options_are_chosen_by_name_or_all() -> None:
    assert [each.name for each in options_named(["segment.ms"])] == ["segment.ms"]
    assert len(options_named([])) == len(OPTIONS)
