"""The writer of a stream: each micro-batch is one transaction, whose version is its number."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_semel.sink import columns, commit_or_abort, options, topics, transaction_name
from pyspark_semel.sink.write import (
    Written,
    receipts_of,
    task_name,
    task_property,
    write,
)


class StreamWriter(DataSourceStreamArrowWriter):
    """Spark makes one for the tasks of a micro-batch, and another one for its end."""

    def __init__(self, given: Mapping[str, str], schema: StructType) -> None:
        """Raise OptionError, SchemaError, UnknownTopicError, UnreachableError."""
        self._options = options.of_stream(given)
        columns.check(schema, self._options.topic)
        self._options = topics.checked(self._options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of one task."""
        handle = transaction_name.of_stream(self._options, task_property)
        return write(self._options, handle, iterator, name=task_name())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's
        """Commit the micro-batch. Spark calls it again for one whose commit it did not note."""
        commit_or_abort.commit(self._options, receipts_of(messages))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's
        """Give the micro-batch up, unless it is committed."""
        commit_or_abort.abort(self._options, receipts_of(messages))
