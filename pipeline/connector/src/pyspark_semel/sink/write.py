"""What one task does: join the transaction, send its rows, hand back a receipt."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from aiosemel import JointHandle, JointReceipt, JointWriter, ProducerOptions
from pyspark_semel.connection import connect
from pyspark_semel.sink import columns
from pyspark_semel.sink.options import SinkOptions


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What a task tells the driver."""

    receipt: str
    """A ``JointReceipt`` as text."""


def write(options: SinkOptions, handle: JointHandle, batches: Iterator[pa.RecordBatch]) -> Written:
    """Send all rows, and wait until they are stored; reads none if they are committed already."""
    connection = connect(options.bootstrap)
    writer = connection.client.join(
        handle, name=_task(), options=ProducerOptions(max_block_ms=options.max_block_ms)
    )
    connection.call(writer.join())
    try:
        if not writer.already_committed:
            for batch in batches:
                for rows in columns.parted(batch, options.topic):
                    connection.call(_send(writer, rows))
        receipt = connection.call(writer.finish())
    finally:
        connection.call(writer.close())
    return Written(receipt.to_json())


def task_property(name: str) -> str | None:
    """Return a local property of the task that this process runs."""
    value: str | None = _context().getLocalProperty(name)
    return value


async def _send(writer: JointWriter, rows: columns.Rows) -> None:
    await writer.send_columns(rows.topic, rows.values, keys=rows.keys, partition=rows.partition)


def _task() -> str:
    context = _context()
    return f"stage {context.stageId()} task {context.partitionId()}.{context.attemptNumber()}"


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "not within a task"
    return context


def receipts_of(messages: list[WriterCommitMessage | None]) -> list[JointReceipt]:
    """Return the receipts of the tasks that have written; of others there is no message."""
    return [
        JointReceipt.from_json(message.receipt)
        for message in messages
        if isinstance(message, Written)
    ]
