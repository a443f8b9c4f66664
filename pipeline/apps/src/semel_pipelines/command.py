"""What every pipeline has in common: its arguments, where it reads and writes, and its end."""

import argparse
import logging
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from semel_common.stop_signals import heeded_signals
from semel_pipelines.settings import session

FORMAT = "semel"
_POLL_S = 1

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a pipeline runs, and between what."""

    bootstrap: str
    checkpoint: str
    available_now: bool
    max_offsets_per_trigger: int | None
    group: str | None
    connection: Mapping[str, str] = field(default_factory=dict)
    """What the connector is told besides, whether it reads or writes."""

    def stream(self, spark: SparkSession, topic: str) -> DataFrame:
        """Return the records of a topic from its beginning, as they come."""
        options = {**self._cluster, "subscribe": topic}
        if self.max_offsets_per_trigger:
            options["maxOffsetsPerTrigger"] = str(self.max_offsets_per_trigger)
        if self.group:
            options["group.id"] = self.group
        reader = spark.readStream.format(FORMAT).options(**options)
        return reader.option("startingOffsets", "earliest").load()

    def table(self, spark: SparkSession, topic: str) -> DataFrame:
        """Return the records that a topic has now."""
        options = {**self._cluster, "subscribe": topic}
        return spark.read.format(FORMAT).options(**options).load()

    def write(self, records: DataFrame, name: str) -> StreamingQuery:
        """Start a query that writes records, those of each micro-batch in one transaction."""
        options = {**self._cluster, "checkpointLocation": self.checkpoint}
        writer = records.writeStream.format(FORMAT).queryName(name).options(**options)
        if self.available_now:
            writer = writer.trigger(availableNow=True)
        return writer.outputMode("append").start()

    @property
    def _cluster(self) -> Mapping[str, str]:
        return {"bootstrap.servers": self.bootstrap, **self.connection}


def parser(module: str, description: str) -> argparse.ArgumentParser:
    """Return the arguments that every pipeline takes."""
    made = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    made.add_argument("--bootstrap", required=True, metavar="HOST:PORT", help="of Semel's cluster")
    made.add_argument(
        "--semel",
        type=_setting,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="option of source and sink, such as ssl.ca.location; may be repeated",
    )
    made.add_argument("--checkpoint", required=True, help="the folder of Spark's checkpoint")
    made.add_argument(
        "--available-now", action="store_true", help="end when all that is there now is done"
    )
    made.add_argument(
        "--max-offsets-per-trigger",
        type=int,
        metavar="N",
        help="records of one micro-batch at most",
    )
    made.add_argument("--group", help="a consumer group whose lag shows how far this is")
    add_session_arguments(made)
    return made


def add_session_arguments(made: argparse.ArgumentParser) -> None:
    """Add where Spark runs."""
    made.add_argument("--master", default="local[*]", help="of Spark's cluster (%(default)s)")
    made.add_argument("--remote", metavar="sc://HOST:PORT", help="a Spark Connect server instead")
    made.add_argument(
        "--conf",
        type=_setting,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="of Spark; may be repeated",
    )


def _setting(text: str) -> tuple[str, str]:
    """Read one setting. Raises ArgumentTypeError."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def place(arguments: argparse.Namespace) -> Place:
    """Return what the arguments say of where to run."""
    return Place(
        bootstrap=arguments.bootstrap,
        checkpoint=arguments.checkpoint,
        available_now=arguments.available_now,
        max_offsets_per_trigger=arguments.max_offsets_per_trigger,
        group=arguments.group,
        connection=dict(arguments.semel),
    )


@contextmanager
def spark_session(arguments: argparse.Namespace, name: str) -> Iterator[SparkSession]:
    """Start Spark as the arguments say, and stop it."""
    spark = session(name, arguments.master, dict(arguments.conf), remote=arguments.remote)
    try:
        yield spark
    finally:
        spark.stop()


def follow(query: StreamingQuery) -> None:
    """Wait until a query has ended; at a signal to stop, let it finish the records that are there.

    Told a second time, it ends at once: if records come faster than the query processes them, it
    would never finish. A query that is stopped in a batch loses nothing, but does it again when it
    is next started. Raises StreamingQueryException if it fails.
    """
    told = threading.Event()
    stopping = heeded_signals()

    def tell(*_: object) -> None:
        told.set()
        for number in stopping:
            signal.signal(number, signal.SIG_DFL)

    for number in stopping:
        signal.signal(number, tell)
    reported = -1
    while not query.awaitTermination(_POLL_S):
        reported = _report(query, reported)
        if told.is_set():
            query.processAllAvailable()
            query.stop()
    _report(query, reported)


def _report(query: StreamingQuery, reported: int) -> int:
    """Log the batches after one, and what came too late in them; returns the last."""
    for progress in query.recentProgress:
        if progress["batchId"] <= reported or "addBatch" not in progress["durationMs"]:
            continue  # Told before, or Spark telling that it has nothing to do.
        reported = progress["batchId"]
        _log.info("batch %d done in %d ms", reported, progress["batchDuration"])
        late = sum(each["numRowsDroppedByWatermark"] for each in progress["stateOperators"])
        if late:
            _log.warning("batch %d: %d groups came too late and were left out", reported, late)
    return reported
