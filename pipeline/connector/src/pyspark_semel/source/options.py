"""The options of the source: Kafka's names and meanings, read once into values. No I/O.

Spark hands the same options to batches and streams; ``for_batch`` and ``for_stream`` refuse those
that have no meaning there. Names with dots, which are those of Kafka's consumer, may be written
with ``kafka.`` before them.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from aiosemel import BatchPlace, IsolationLevel, OffsetSpec, Security, TopicPartition
from aiosemel.errors import InvalidConfigError
from pyspark_semel.connection import API_TIMEOUT_MS
from pyspark_semel.errors import OptionError
from pyspark_semel.options import INT32_MAX, INT64_MAX, Options, refuse
from pyspark_semel.source.offsets import EARLIEST, LATEST, OffsetsError, partitions_of_json

_FETCH_BYTES = 4 << 20
_MAX_TRIGGER_DELAY_MS = 15 * 60_000

_GROUP = "group.id"
_ISOLATION = "isolation.level"
_API_TIMEOUT = "default.api.timeout.ms"
_FETCH_MAX = "max.partition.fetch.bytes"
_DOTTED = (_GROUP, _ISOLATION, _API_TIMEOUT, _FETCH_MAX)
_SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
_ENDING = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
_BATCH_ONLY = (*_ENDING, "pushdown")
_STREAM_ONLY = (
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    _GROUP,
    f"kafka.{_GROUP}",
)
_KNOWN = (
    *_SUBSCRIPTIONS,
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsets",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "includeHeaders",
    "skipBatches",
    *_BATCH_ONLY,
    *_STREAM_ONLY,
)
_NEEDLESS = {
    "kafka.auto.offset.reset": "give startingOffsets, and failOnDataLoss",
    "groupIdPrefix": "no consumer group is needed to read; group.id reports progress to one",
    "kafkaConsumer.pollTimeoutMs": f"give {_API_TIMEOUT}",
    "fetchOffset.numRetries": f"give {_API_TIMEOUT}: until then, everything is tried again",
    "fetchOffset.retryIntervalMs": f"give {_API_TIMEOUT}: until then, everything is tried again",
}
"""Options for Kafka that say how, not what; and what to do here."""


@dataclass(frozen=True, slots=True)
class Topics:
    """All partitions of some topics."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """All partitions of the topics whose whole names match a regular expression."""

    pattern: "re.Pattern[str]"


@dataclass(frozen=True, slots=True)
class Partitions:
    """These partitions."""

    partitions: frozenset[TopicPartition]


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


Subscription: TypeAlias = Topics | Pattern | Partitions
Bound: TypeAlias = OffsetSpec | AtOffsets | AtTimestamps | AtTimestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What was asked for, with defaults; docs/spark.md says what each means."""

    bootstrap: str
    security: Security | None
    """How to connect."""
    subscription: Subscription
    starting: Bound | None
    """None: nothing was given."""
    ending: Bound
    latest_if_no_timestamp: bool
    fail_on_data_loss: bool
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    min_partitions: int | None
    max_records_per_partition: int | None
    include_headers: bool
    pushdown: bool
    isolation_level: IsolationLevel
    group_id: str | None
    api_timeout_ms: int
    fetch_max_bytes: int
    skip_batches: tuple[BatchPlace, ...]


def parse(given: Mapping[str, str]) -> SourceOptions:
    """Read the options of a source; raises OptionError."""
    refuse(given, _NEEDLESS)
    options = Options(given, _KNOWN, _DOTTED)
    return SourceOptions(
        bootstrap=options.bootstrap,
        security=options.security,
        subscription=_subscription(options),
        starting=_bound(
            options, "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets"
        ),
        ending=_bound(options, *_ENDING) or OffsetSpec.LATEST,
        latest_if_no_timestamp=_strategy(options),
        fail_on_data_loss=options.boolean("failOnDataLoss", default=True),
        max_offsets_per_trigger=options.integer("maxOffsetsPerTrigger", minimum=1),
        min_offsets_per_trigger=_min_offsets(options),
        max_trigger_delay_ms=_duration_ms(options, "maxTriggerDelay", _MAX_TRIGGER_DELAY_MS),
        min_partitions=options.integer("minPartitions", minimum=1),
        max_records_per_partition=options.integer("maxRecordsPerPartition", minimum=1),
        include_headers=options.boolean("includeHeaders", default=False),
        pushdown=options.boolean("pushdown", default=False),
        isolation_level=_isolation(options),
        group_id=options.filled(_GROUP),
        api_timeout_ms=_int32(options, _API_TIMEOUT) or API_TIMEOUT_MS,
        fetch_max_bytes=_int32(options, _FETCH_MAX) or _FETCH_BYTES,
        skip_batches=_skipped(options),
    )


def for_batch(given: Mapping[str, str]) -> SourceOptions:
    """Read the options of a batch; raises OptionError for those of streams too."""
    refuse(given, dict.fromkeys(_STREAM_ONLY, "it has no meaning in a batch: leave it out"))
    options = parse(given)
    for name, bound, never in (
        ("startingOffsets", options.starting, LATEST),
        ("endingOffsets", options.ending, EARLIEST),
    ):
        if bound is _SPECS[never] or _mentions(bound, never):
            raise OptionError(f"{name} of a batch cannot be {_SPECS[never].value} ({never})")
    _check_order(options.starting, options.ending)
    return options


def for_stream(given: Mapping[str, str]) -> SourceOptions:
    """Read the options of a stream; raises OptionError for those of batches too."""
    refuse(given, dict.fromkeys(_BATCH_ONLY, "it has no meaning in a stream: leave it out"))
    return parse(given)


def subscribes(subscription: Subscription, topic: str) -> bool:
    """Whether any partition of a topic is subscribed to."""
    match subscription:
        case Topics(names):
            return topic in names
        case Pattern(pattern):
            return pattern.fullmatch(topic) is not None
        case Partitions(partitions):
            return any(each.topic == topic for each in partitions)


_SPECS = {EARLIEST: OffsetSpec.EARLIEST, LATEST: OffsetSpec.LATEST}


def _check_order(starting: Bound | None, ending: Bound) -> None:
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
            for each in sorted(starts.keys() & ends.keys()):
                if starts[each] > ends[each] >= 0:
                    raise OptionError(
                        f"{start} of {each} is {starts[each]}, more than {end}, which is"
                        f" {ends[each]}"
                    )
        case _:
            pass


def _subscription(options: Options) -> Subscription:
    given = [name for name in _SUBSCRIPTIONS if options.text(name) is not None]
    if len(given) != 1:
        found = f"{' and '.join(given)} are" if given else "none is"
        raise OptionError(f"one of {', '.join(_SUBSCRIPTIONS)} is needed, and {found} given")
    (name,) = given
    text = options.filled(name) or ""
    match name:
        case "subscribe":
            names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
            if not names:
                raise OptionError("subscribe names no topic: give names, with commas between")
            return Topics(names)
        case "subscribePattern":
            try:
                return Pattern(re.compile(text.strip()))
            except re.error as error:
                raise OptionError(
                    f"subscribePattern is {text!r}, no regular expression: {error}"
                ) from error
        case _:
            return Partitions(_assigned(text))


def _assigned(text: str) -> frozenset[TopicPartition]:
    try:
        topics = json.loads(text)
    except ValueError:
        topics = None
    found = [
        TopicPartition(topic, number)
        for topic, numbers in (topics if isinstance(topics, dict) else {}).items()
        for number in (numbers if isinstance(numbers, list) else [None])
        if type(number) is int and number >= 0
    ]
    if not found or len(found) != sum(map(len, topics.values())):
        raise OptionError(f'assign is {text!r}, not of the form {{"topic":[0,1],"other":[2]}}')
    return frozenset(found)


def _bound(options: Options, timestamp: str, timestamps: str, offsets: str) -> Bound | None:
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
        numbers = partitions_of_json(text)
    except OffsetsError as error:
        words = ' or "earliest" or "latest"' if minimum == EARLIEST else ""
        raise OptionError(
            f'{option} is {text!r}, not of the form {{"topic":{{"0":23}}}}{words}: {error}'
        ) from error
    for each, number in numbers.items():
        if number < minimum:
            raise OptionError(f"{option} of {each} is {number}, less than {minimum}")
        if number > INT64_MAX:
            raise OptionError(f"{option} of {each} is {number}, more than {INT64_MAX}")
    return numbers


def _mentions(bound: Bound | None, offset: int) -> bool:
    return isinstance(bound, AtOffsets) and offset in bound.offsets.values()


def _strategy(options: Options) -> bool:
    strategy = (options.filled("startingOffsetsByTimestampStrategy") or "error").lower()
    if strategy not in {"error", "latest"}:
        raise OptionError(
            f"startingOffsetsByTimestampStrategy is {strategy!r}, neither error nor latest"
        )
    return strategy == "latest"


def _min_offsets(options: Options) -> int | None:
    minimum = options.integer("minOffsetsPerTrigger", minimum=1)
    maximum = options.integer("maxOffsetsPerTrigger", minimum=1)
    if minimum is not None and maximum is not None and minimum > maximum:
        raise OptionError(
            f"minOffsetsPerTrigger is {minimum}, more than maxOffsetsPerTrigger, which is {maximum}"
        )
    return minimum


def _isolation(options: Options) -> IsolationLevel:
    level = options.filled(_ISOLATION) or IsolationLevel.READ_COMMITTED.value
    if level not in set(IsolationLevel):
        raise OptionError(f"{_ISOLATION} is {level!r}: {' or '.join(IsolationLevel)}")
    return IsolationLevel(level)


def _skipped(options: Options) -> tuple[BatchPlace, ...]:
    text = options.filled("skipBatches") or ""
    try:
        return tuple(BatchPlace.parse(each) for each in text.split(",") if each.strip())
    except InvalidConfigError as error:
        raise OptionError(f"skipBatches is {text!r}: {error.message}") from error


def _int32(options: Options, name: str) -> int | None:
    return options.integer(name, minimum=1, maximum=INT32_MAX)


_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def _duration_ms(options: Options, name: str, default_ms: int) -> int:
    text = options.text(name)
    if text is None:
        return default_ms
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    if found is None or (found[2] or "ms") not in _UNITS_MS:
        raise OptionError(f"{name} is {text!r}, no time such as 500ms, 30s, 15m or 2h")
    return int(found[1]) * _UNITS_MS[found[2] or "ms"]
