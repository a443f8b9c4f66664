"""Offsets of streams are written in one way only, and read back as they were."""

import json
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiosemel import TopicPartition
from pyspark_semel.source import json_forms
from pyspark_semel.source.json_forms import FormError
from pyspark_semel.source.offsets import StreamOffsets

NAMES = ["orders", "Orders", "-", ".x", "_10", "2"]
TOPICS = st.sampled_from(NAMES)
POSITIONS = st.dictionaries(
    st.builds(TopicPartition, TOPICS, st.integers(0, 20)), st.integers(0, 1 << 62), max_size=6
)
OFFSETS = st.builds(
    StreamOffsets,
    cluster_id=st.text(min_size=1),
    topic_ids=st.fixed_dictionaries(dict.fromkeys(NAMES, st.text(min_size=1))),
    positions=POSITIONS,
    initial=st.booleans(),
    began=st.none() | POSITIONS,
)


@given(OFFSETS)
def test_what_spark_stored_is_read_back(offsets: StreamOffsets) -> None:
    assert StreamOffsets.from_json(json.loads(json.dumps(offsets.to_json()))) == offsets


@given(OFFSETS, st.randoms(use_true_random=False))
def test_the_same_offsets_have_one_text(offsets: StreamOffsets, random: Random) -> None:
    """Spark compares texts: another order would be taken for progress, for ever."""
    items = list(offsets.positions.items())
    random.shuffle(items)
    shuffled = StreamOffsets(
        cluster_id=offsets.cluster_id,
        topic_ids=dict(reversed(list(offsets.topic_ids.items()))),
        positions=dict(items),
        initial=offsets.initial,
        began=offsets.began,
    )
    assert json.dumps(shuffled.to_json()) == json.dumps(offsets.to_json())


def test_the_form_is_that_of_kafka_with_one_key_more() -> None:
    offsets = StreamOffsets(
        cluster_id="c",
        topic_ids={"orders": "id"},
        positions={TopicPartition("orders", 10): 5, TopicPartition("orders", 2): 7},
    )
    assert json.dumps(offsets.to_json()) == (
        '{"@semel": {"cluster": "c", "topics": {"orders": "id"}}, "orders": {"2": 7, "10": 5}}'
    )


def test_users_may_copy_an_offset_of_a_stream_into_an_option() -> None:
    text = '{"@semel": {"cluster": "c", "topics": {}}, "orders": {"0": 23}}'
    assert json_forms.numbers(json_forms.parse(text)) == {TopicPartition("orders", 0): 23}


def test_a_position_counts_for_the_log_only_that_it_was_of() -> None:
    partition = TopicPartition("t", 0)
    offsets = StreamOffsets(cluster_id="c", topic_ids={"t": "old"}, positions={partition: 7})
    assert offsets.position(partition, "old") == 7
    assert offsets.position(partition, "new") is None


@pytest.mark.parametrize(
    "stored",
    [None, {}, {"orders": {"0": 23}}, {"@semel": {"cluster": 1, "topics": {}}}, {"@semel": {}}],
)
def test_an_offset_of_another_source_is_refused(stored: object) -> None:
    with pytest.raises(FormError, match="does not name the cluster"):
        StreamOffsets.from_json(stored)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["@semel", "cluster", "topics", "began", "t", "0", "x"]), inner
            )
        ),
        max_leaves=12,
    )
)
def test_a_checkpoint_of_any_json_is_read_or_refused(stored: object) -> None:
    with suppress(FormError):
        StreamOffsets.from_json(stored)


@pytest.mark.parametrize(
    ("positions", "said"),
    [
        ({"t": {"0": -1}}, "-1 of t-0 is not an offset"),
        ({"t": {"0": 1 << 63}}, "is not an offset"),
        ({"u": {"0": 1}}, "no id of the topic"),
        ({"t": [1]}, "is not an object"),
    ],
)
def test_a_checkpoint_with_impossible_offsets_is_refused(
    positions: dict[str, object], said: str
) -> None:
    with pytest.raises(FormError, match=said):
        StreamOffsets.from_json({"@semel": {"cluster": "c", "topics": {"t": "id"}}, **positions})


@pytest.mark.parametrize(
    "text", ["", "x", "[]", '{"t": 1}', '{"t": {"x": 1}}', '{"t": {"0": 1.5}}', '{"t": {"0": "1"}}']
)
def test_a_text_without_offsets_is_refused(text: str) -> None:
    with pytest.raises(FormError):
        json_forms.numbers(json_forms.parse(text))
