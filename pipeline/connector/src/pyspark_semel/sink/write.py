"""What one task does: join the transaction, send its rows, hand back a receipt."""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from aiosemel import JointHandle, JointReceipt, JointWriter
from aiosemel.errors import JointOwnerMismatchError, ProducerFencedError, SemelError
from pyspark_semel.connection import Connection
from pyspark_semel.errors import TransactionError
from pyspark_semel.preflight import connect_to, unreachable_named
from pyspark_semel.settings import flush_spans
from pyspark_semel.sink import columns
from pyspark_semel.sink.keep_alive_watch import watch
from pyspark_semel.sink.options import RESET, TRANSACTIONAL_ID, SinkOptions
from pyspark_semel.sink.refused import spark_error
from pyspark_semel.sink.topics import Topics


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What a task tells the driver."""

    receipt: str
    """A ``JointReceipt`` as text."""


def write(
    options: SinkOptions, handle: JointHandle, batches: Iterator[pa.RecordBatch], *, name: str
) -> Written:
    """Send all rows, and wait until they are stored; reads none if they are committed already.

    ``name`` is what operators see of the task.
    """
    connection = connect_to(options, options.cluster_id)
    writer = connection.client.join(handle, name=name, options=options.producer)
    try:
        with unreachable_named(options):
            connection.call(_join(writer))
            if writer.already_committed:
                receipt = connection.call(writer.finish())
            else:
                receipt = _send_watched(connection, options, writer, batches)
    finally:
        connection.call(writer.close())
        flush_spans()
    return Written(receipt.to_json())


def receipts_of(messages: Iterable[WriterCommitMessage | None]) -> list[JointReceipt]:
    """Return the receipts of the tasks that have written; of others there is no message."""
    return [
        JointReceipt.from_json(message.receipt)
        for message in messages
        if isinstance(message, Written)
    ]


def task_property(name: str) -> str | None:
    """Return a local property of the task that this process runs."""
    value: str | None = _context().getLocalProperty(name)
    return value


def task_name() -> str:
    """Return which attempt of which task this process runs."""
    context = _context()
    return f"stage {context.stageId()} task {context.partitionId()}.{context.attemptNumber()}"


async def _join(writer: JointWriter) -> None:
    try:
        await writer.join()
    except JointOwnerMismatchError as error:
        raise TransactionError(
            f"{TRANSACTIONAL_ID} {writer.handle.transactional_id!r} belongs to another query, or"
            f" to the same one with another checkpoint ({error}): give another id. {RESET}=true"
            " takes it over, and forgets its committed versions: a version that is written again is"
            " then in the topic twice"
        ) from error
    except ProducerFencedError as error:
        raise TransactionError(
            f"another run of the same query writes ({error}): one checkpoint, or copies of one,"
            " cannot be in use twice at a time"
        ) from error


def _send_watched(
    connection: Connection,
    options: SinkOptions,
    writer: JointWriter,
    batches: Iterator[pa.RecordBatch],
) -> JointReceipt:
    """Send all rows while this process keeps watch over the transaction, and after."""
    keep_alive = connection.call(watch(connection.client, writer.handle))
    connection.start(keep_alive.run())
    receipt = None
    try:
        _send_all(connection, options, writer, batches)
        receipt = connection.call(writer.finish())
        return receipt
    except SemelError as error:
        raise spark_error(error) or error from error
    finally:
        connection.call(keep_alive.end(finished=receipt is not None))


def _send_all(
    connection: Connection,
    options: SinkOptions,
    writer: JointWriter,
    batches: Iterator[pa.RecordBatch],
) -> None:
    """Send batch by batch; Spark makes the next one meanwhile."""
    topics = Topics(connection)
    sending: Future[None] | None = None
    for batch in batches:
        parts = [
            rows
            for topic, of_topic in columns.by_topic(batch, options.topic)
            for rows in columns.by_partition(topic, of_topic, topics.partition_count(topic))
        ]
        if sending is not None:
            sending.result()
        sending = connection.start(_send(writer, parts))
    if sending is not None:
        sending.result()


async def _send(writer: JointWriter, parts: Iterable[columns.Rows]) -> None:
    for rows in parts:
        await writer.send_columns(
            rows.topic,
            rows.values,
            keys=rows.keys,
            partition=rows.partition,
            headers=rows.headers,
        )


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "not within a task"
    return context
