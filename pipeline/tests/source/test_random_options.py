"""Whatever text an option of the source has, it is read or refused with the connector's own error.

JSON of any shape goes to each option that takes JSON, and any text to every option.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_semel.errors import OptionError
from pyspark_semel.source.options import for_batch, for_stream

JSON_OPTIONS = [
    "assign",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "endingOffsets",
    "endingOffsetsByTimestamp",
]
TEXT_OPTIONS = [
    *JSON_OPTIONS,
    "subscribe",
    "subscribePattern",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "skipBatches",
    "isolation.level",
    "group.id",
    "default.api.timeout.ms",
    "max.partition.fetch.bytes",
    "security.protocol",
]
ERROR_LENGTH_MAX = 1_000
"""A longer text is not read by people."""
pytestmark = pytest.mark.filterwarnings("ignore:Possible (nested set|set):FutureWarning")
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
KEYS = st.sampled_from(["flights", "x", "@semel", "", "0", "-1", "²", "99999999999"])
SHAPES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
HOSTILE = ["[" * 50_000, '{"t":' * 50_000, "9" * 5_000, '{"t":{"0":%s}}' % ("9" * 5_000), "NaN", ""]


@pytest.mark.parametrize("name", JSON_OPTIONS)
@given(shape=st.dictionaries(KEYS, SHAPES, max_size=3) | SHAPES)
def test_json_of_any_shape_is_read_or_refused(name: str, shape: object) -> None:
    check(name, json.dumps(shape))


@given(st.sampled_from(TEXT_OPTIONS), st.text())
def test_any_text_is_read_or_refused(name: str, text: str) -> None:
    check(name, text)


@pytest.mark.parametrize("name", TEXT_OPTIONS)
def test_a_text_of_hostile_length_is_read_or_refused(name: str) -> None:
    for text in HOSTILE:
        check(name, text)


def check(name: str, text: str) -> None:
    """Read options with this value; any other error than OptionError fails the test."""
    subscription = {} if name in {"assign", "subscribePattern"} else {"subscribe": "t"}
    given = {"bootstrap.servers": "a:1", **subscription, name: text}
    for read in (for_batch, for_stream):
        try:
            read(given)
        except OptionError as error:
            assert len(str(error)) < ERROR_LENGTH_MAX  # noqa: PT017 - no error is right, too
