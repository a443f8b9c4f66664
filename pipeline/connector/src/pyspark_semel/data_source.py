"""What Spark calls: one data source, from which it gets readers and writers.

Imports of readers and writers are late: Spark imports this module to look the format up, also where
it is never used, and one package that fails to import hides all data sources.
"""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType


class SemelDataSource(DataSource):
    """The format ``semel``: its options are those of docs/use/spark.md.

    Spark gives options with names in lower case, and parameters by name.
    """

    @classmethod
    def name(cls) -> str:
        """Return what ``format`` is given."""
        return "semel"

    def schema(self) -> StructType:
        """Return the columns of the source; with headers if ``includeHeaders`` is true."""
        from pyspark_semel.source import columns
        from pyspark_semel.source.options import parse

        return columns.schema(include_headers=parse(self.options).include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads a batch."""
        from pyspark_semel.source import batch

        return batch.reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """Return what reads a stream."""
        from pyspark_semel.source import stream

        return stream.StreamReader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return what writes a batch."""
        from pyspark_semel.sink import batch

        return batch.BatchWriter(self.options, schema, overwrite=overwrite)

    def streamWriter(  # noqa: N802 - Spark's
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002 - Spark's
    ) -> DataSourceStreamWriter:
        """Return what writes the micro-batches of a stream.

        ``overwrite`` is the output mode complete: its whole result is written, every time.
        """
        from pyspark_semel.sink import stream

        return stream.StreamWriter(self.options, schema)
