"""The options of the source: Kafka's names and meanings, read once into values. No I/O.

Spark hands the same options to batches and streams; ``for_batch`` and ``for_stream`` refuse options
without a meaning there. Names with dots, which are those of Kafka's consumer, may be written with
``kafka.`` before them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from aiosemel import BatchPlace, IsolationLevel, OffsetSpec, Security
from aiosemel.errors import InvalidConfigError
from pyspark_semel.errors import OptionError
from pyspark_semel.options import (
    API_TIMEOUT,
    API_TIMEOUT_MS,
    IGNORE_KAFKA,
    INT32_MAX,
    MAX_OUTAGE,
    MAX_OUTAGE_MS,
    Options,
    refuse,
    refuse_tables_and_paths,
    shortened,
    shown,
)
from pyspark_semel.source.bounds import SPECS, Bound, bound, check_order, mentions
from pyspark_semel.source.offsets import EARLIEST, LATEST
from pyspark_semel.source.splits import Spread
from pyspark_semel.source.subscriptions import SUBSCRIPTIONS, Subscription, subscription

_FETCH_BYTES = 4 << 20
_MAX_TRIGGER_DELAY_MS = 15 * 60_000
_MIN_OFFSETS_PER_TASK = 1_000
"""Few enough that a job with much work for each record still has tasks for all cores."""

_GROUP = "group.id"
_ISOLATION = "isolation.level"
_FETCH_MAX = "max.partition.fetch.bytes"
_DOTTED = (_GROUP, _ISOLATION, API_TIMEOUT, _FETCH_MAX)
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
    *SUBSCRIPTIONS,
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsets",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "minOffsetsPerTask",
    "includeHeaders",
    "skipBatches",
    MAX_OUTAGE,
    *_BATCH_ONLY,
    *_STREAM_ONLY,
)
_NEEDLESS = {"kafka.auto.offset.reset": "give startingOffsets, and failOnDataLoss"}
"""Kafka's options for the records to read, and their counterparts here."""
_HOWS = {
    "groupIdPrefix": "no consumer group is needed to read; group.id reports progress to one",
    "kafkaConsumer.pollTimeoutMs": f"give {API_TIMEOUT}",
    "fetchOffset.numRetries": f"give {API_TIMEOUT}: until then, everything is tried again",
    "fetchOffset.retryIntervalMs": f"give {API_TIMEOUT}: until then, everything is tried again",
}
"""Options for Kafka that say how it is read; ``ignoreKafkaProperties`` passes them over, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What was asked for, with defaults; docs/use/spark.md says what each means."""

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
    spread: Spread
    include_headers: bool
    pushdown: bool
    isolation_level: IsolationLevel
    group_id: str | None
    api_timeout_ms: int
    """How long a call may wait for the cluster, with all its attempts."""
    max_outage_ms: int | None
    """How long a cluster that has answered once may be away; None: not longer than a call."""
    waits_at_first: bool = False
    """Whether it may be away as long before its first answer, too."""
    fetch_max_bytes: int
    skip_batches: tuple[BatchPlace, ...]


def parse(given: Mapping[str, str]) -> SourceOptions:
    """Read the options of a source; raises OptionError."""
    refuse_tables_and_paths(given, instead="subscribe")
    refuse(given, _NEEDLESS)
    options = Options(given, (*_KNOWN, *_HOWS), _DOTTED)
    if not options.boolean(IGNORE_KAFKA, default=False):
        refuse(given, _HOWS)
    return SourceOptions(
        bootstrap=options.bootstrap,
        security=options.security,
        subscription=subscription(options),
        starting=bound(
            options, "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets"
        ),
        ending=bound(options, *_ENDING) or OffsetSpec.LATEST,
        latest_if_no_timestamp=_strategy(options),
        fail_on_data_loss=options.boolean("failOnDataLoss", default=True),
        max_offsets_per_trigger=options.integer("maxOffsetsPerTrigger", minimum=1),
        min_offsets_per_trigger=_min_offsets(options),
        max_trigger_delay_ms=options.duration_ms("maxTriggerDelay", _MAX_TRIGGER_DELAY_MS),
        spread=_spread(options),
        include_headers=options.boolean("includeHeaders", default=False),
        pushdown=options.boolean("pushdown", default=False),
        isolation_level=_isolation(options),
        group_id=options.filled(_GROUP),
        api_timeout_ms=_int32(options, API_TIMEOUT) or API_TIMEOUT_MS,
        max_outage_ms=options.duration_ms(MAX_OUTAGE, MAX_OUTAGE_MS),
        fetch_max_bytes=_int32(options, _FETCH_MAX) or _FETCH_BYTES,
        skip_batches=_skipped(options),
    )


def for_batch(given: Mapping[str, str]) -> SourceOptions:
    """Read the options of a batch; raises OptionError for those of streams too."""
    refuse(given, dict.fromkeys(_STREAM_ONLY, "it has no meaning in a batch: leave it out"))
    options = parse(given)
    for name, given_bound, never in (
        ("startingOffsets", options.starting, LATEST),
        ("endingOffsets", options.ending, EARLIEST),
    ):
        if given_bound is SPECS[never] or mentions(given_bound, never):
            raise OptionError(f"{name} of a batch cannot be {SPECS[never].value} ({never})")
    check_order(options.starting, options.ending)
    if any(name.lower() == MAX_OUTAGE.lower() for name in given):
        return replace(options, waits_at_first=True)
    return replace(options, max_outage_ms=None)


def for_stream(given: Mapping[str, str]) -> SourceOptions:
    """Read the options of a stream; raises OptionError for those of batches too."""
    refuse(given, dict.fromkeys(_BATCH_ONLY, "it has no meaning in a stream: leave it out"))
    return parse(given)


def _spread(options: Options) -> Spread:
    return Spread(
        min_partitions=options.integer("minPartitions", minimum=1),
        max_records=options.integer("maxRecordsPerPartition", minimum=1),
        min_offsets=options.integer("minOffsetsPerTask", minimum=1) or _MIN_OFFSETS_PER_TASK,
    )


def _strategy(options: Options) -> bool:
    strategy = (options.filled("startingOffsetsByTimestampStrategy") or "error").lower()
    if strategy not in {"error", "latest"}:
        raise OptionError(
            f"startingOffsetsByTimestampStrategy is {shown(strategy)}, neither error nor latest"
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
        raise OptionError(f"{_ISOLATION} is {shown(level)}: {' or '.join(IsolationLevel)}")
    return IsolationLevel(level)


def _skipped(options: Options) -> tuple[BatchPlace, ...]:
    text = options.filled("skipBatches") or ""
    try:
        return tuple(BatchPlace.parse(part) for part in text.split(",") if part.strip())
    except InvalidConfigError as error:
        raise OptionError(f"skipBatches is {shown(text)}: {shortened(error.message)}") from error


def _int32(options: Options, name: str) -> int | None:
    return options.integer(name, minimum=1, maximum=INT32_MAX)
