"""Where a read begins and ends, as its options say it. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from aiosemel import OffsetSpec, TopicPartition
from pyspark_semel.errors import OptionError
from pyspark_semel.options import INT64_MAX, Options, shown
from pyspark_semel.source import json_forms
from pyspark_semel.source.json_forms import FormError
from pyspark_semel.source.offsets import EARLIEST, LATEST

SPECS = {EARLIEST: OffsetSpec.EARLIEST, LATEST: OffsetSpec.LATEST}


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """An offset for each partition, or ``EARLIEST`` or ``LATEST``."""

    option: str
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTimestamps:
    """The first record at a time or later, for each partition; milliseconds since 1970 UTC."""

    option: str
    timestamps_ms: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTimestamp:
    """The first record at a time or later, the same for all partitions."""

    option: str
    timestamp_ms: int


Bound: TypeAlias = OffsetSpec | AtOffsets | AtTimestamps | AtTimestamp


def bound(options: Options, timestamp: str, timestamps: str, offsets: str) -> Bound | None:
    """Return what was given, in Kafka's order of precedence."""
    at = options.integer(timestamp, minimum=0)
    if at is not None:
        return AtTimestamp(timestamp, at)
    text = options.text(timestamps)
    if text is not None:
        return AtTimestamps(timestamps, _partition_numbers(timestamps, text, minimum=0))
    text = options.text(offsets)
    if text is None:
        return None
    if text.strip().lower() in set(OffsetSpec) - {OffsetSpec.MAX_TIMESTAMP}:
        return OffsetSpec(text.strip().lower())
    return AtOffsets(offsets, _partition_numbers(offsets, text, minimum=EARLIEST))


def _partition_numbers(option: str, text: str, *, minimum: int) -> Mapping[TopicPartition, int]:
    try:
        numbers = json_forms.numbers(json_forms.parse(text))
    except FormError as error:
        words = ' or "earliest" or "latest"' if minimum == EARLIEST else ""
        raise OptionError(
            f'{option} is {shown(text)}, not of the form {{"topic":{{"0":23}}}}{words}: {error}'
        ) from error
    for each, number in numbers.items():
        if number < minimum:
            raise OptionError(f"{option} of {each} is {number}, less than {minimum}")
        if number > INT64_MAX:
            raise OptionError(f"{option} of {each} is {number}, more than {INT64_MAX}")
    return numbers


def mentions(bound: Bound | None, offset: int) -> bool:
    """Whether a bound gives this number to any partition."""
    return isinstance(bound, AtOffsets) and offset in bound.offsets.values()


def check_order(starting: Bound | None, ending: Bound) -> None:
    """Raise OptionError for two bounds of one kind that are the wrong way round.

    What only the logs make so (an end of a log, a time beside an offset) is no mistake.
    """
    match starting, ending:
        case AtTimestamp(start, at_ms), AtTimestamp(end, until_ms) if at_ms > until_ms:
            raise OptionError(f"{start} is {at_ms}, more than {end}, which is {until_ms}")
        case (AtOffsets(start, starts), AtOffsets(end, ends)) | (
            AtTimestamps(start, starts),
            AtTimestamps(end, ends),
        ):
            for topic_partition in sorted(starts.keys() & ends.keys()):
                if starts[topic_partition] > ends[topic_partition] >= 0:
                    raise OptionError(
                        f"{start} of {topic_partition} is {starts[topic_partition]},"
                        f" more than {end}, which is {ends[topic_partition]}"
                    )
        case _:
            pass
