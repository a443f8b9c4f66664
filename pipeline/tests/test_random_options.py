"""Whatever text an option has, it is read or refused with the connector's own error.

JSON of any shape goes to each option that takes JSON, and any text to every option of the page.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_semel.errors import OptionError
from pyspark_semel.sink import options as sink
from pyspark_semel.source.options import for_batch, for_stream

Read = Callable[[Mapping[str, str]], object]
PAGE = (Path(__file__).parents[2] / "docs" / "use" / "spark.md").read_text("utf-8")


def options_in(part: str) -> list[str]:
    """Return the names in the table of options of one part of the page."""
    table = PAGE.split(f"\n## {part}\n")[1].split("\n### Options\n")[1].split("\n###")[0]
    rows = (line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


JSON_OPTIONS = [
    "assign",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "endingOffsets",
    "endingOffsetsByTimestamp",
]
SOURCE_OPTIONS = options_in("Source")
SECURE = ["ssl.certificate.location", "ssl.key.location", "ssl.server.name"]
SINK_OPTIONS = [*options_in("Sink"), *SECURE, "ssl.ca.location", "sasl.oauthbearer.token.location"]
TLS = {"security.protocol": "SASL_SSL", "sasl.oauthbearer.token.location": "/token"}
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
LONG = [
    "[" * 50_000, '{"t":' * 50_000, "9" * 5_000, "a" * 70_000, '{"t":{"0":%s}}' % ("9" * 5_000),
    *(shape % ("a" * 70_000) for shape in ('{"%s":["x"]}', '{"%s":{"0":"x"}}', '{"%s":{"x":0}}')),
]  # fmt: skip
HOSTILE = [*LONG, "NaN", "", "\0", "1\0", "4\x1e", "²", "٣", "1e400", "\ud800"]


@pytest.mark.parametrize("name", JSON_OPTIONS)
@given(shape=st.dictionaries(KEYS, SHAPES, max_size=3) | SHAPES)
def test_json_of_any_shape_is_read_or_refused(name: str, shape: object) -> None:
    check_source(name, json.dumps(shape))


@given(st.sampled_from(SOURCE_OPTIONS), st.text())
def test_any_text_for_a_source_is_read_or_refused(name: str, text: str) -> None:
    check_source(name, text)


@given(st.sampled_from(SINK_OPTIONS), st.text())
def test_any_text_for_a_sink_is_read_or_refused(name: str, text: str) -> None:
    check_sink(name, text)


@pytest.mark.parametrize("name", SOURCE_OPTIONS)
def test_hostile_text_for_a_source_is_read_or_refused(name: str) -> None:
    for text in HOSTILE:
        check_source(name, text)


@pytest.mark.parametrize("name", SINK_OPTIONS)
def test_hostile_text_for_a_sink_is_read_or_refused(name: str) -> None:
    for text in HOSTILE:
        check_sink(name, text)


@pytest.mark.parametrize("read", [for_batch, for_stream, sink.of_batch, sink.of_stream])
@pytest.mark.parametrize("before", ["", "kafka."])
def test_an_option_with_a_long_name_is_refused(before: str, read: Read) -> None:
    with pytest.raises(OptionError) as raised:
        read({f"{before}{'a' * 70_000}": "1"})
    assert len(str(raised.value)) < ERROR_LENGTH_MAX


def check_source(name: str, text: str) -> None:
    """Read options with this value; any other error than OptionError fails the test."""
    subscription = {} if name in {"assign", "subscribePattern"} else {"subscribe": "t"}
    for read in (for_batch, for_stream):
        check(read, {"bootstrap.servers": "a:1", **subscription, name: text})
        check(read, {"bootstrap.servers": "a:1", **subscription, **TLS, name: text})


def check_sink(name: str, text: str) -> None:
    """Read options with this value; any other error than OptionError fails the test."""
    for read in (sink.of_batch, sink.of_stream):
        check(read, {"bootstrap.servers": "a:1", name: text})
        check(read, {"bootstrap.servers": "a:1", "transactionalId": "t", **TLS, name: text})


def check(read: Read, given: Mapping[str, str]) -> None:
    try:
        read(given)
    except OptionError as error:
        assert len(str(error)) < ERROR_LENGTH_MAX  # noqa: PT017 - no error is right, too
