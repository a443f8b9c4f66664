"""The writer of a batch: all of it is one transaction."""

from collections.abc import Iterator, Mapping
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_semel.errors import OptionError
from pyspark_semel.sink import columns, commit_or_abort, options, topics, transaction_name
from pyspark_semel.sink.write import (
    Written,
    receipts_of,
    task_name,
    task_property,
    write,
)


class BatchWriter(DataSourceArrowWriter):
    """Made once for a write; Spark gives copies of it to the tasks."""

    def __init__(self, given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        """Raise OptionError, SchemaError, UnknownTopicError, UnreachableError."""
        if overwrite:
            raise OptionError("a topic cannot be overwritten: write with mode append")
        self._options = options.of_batch(given)
        columns.check(schema, self._options.topic)
        self._options = topics.checked(self._options)
        self._write_id = str(uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of one task."""
        handle = transaction_name.of_batch(self._options, task_property, self._write_id)
        return write(self._options, handle, iterator, name=task_name())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what all tasks wrote."""
        commit_or_abort.commit(self._options, receipts_of(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Give it up, unless it is committed."""
        expected = transaction_name.of_lone_batch(self._options, self._write_id)
        commit_or_abort.abort(self._options, receipts_of(messages), expected)
