"""Semel for Apache Spark: a source, and a sink that writes exactly once, batch and streaming.

Spark finds this package by its name, where it is installed beside PySpark: ``format("semel")``
works without more. Where it comes another way (``--py-files``), and in threads that you start
yourself and that write, call ``register``.
"""

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pyspark_semel.data_source import SemelDataSource

DefaultSource = SemelDataSource
"""What Spark looks for in packages whose names begin with ``pyspark_``."""

__all__ = ["DefaultSource", "SemelDataSource", "register"]


def register(spark: SparkSession) -> None:
    """Make ``format("semel")`` known to a session that has not found it by itself.

    And to the thread that calls this: classic Spark looks up where to write in the session that is
    active in the thread, and in a thread that a user has started, none is.
    """
    spark.dataSource.register(SemelDataSource)
    spark.createDataFrame([], StructType())  # Of all that is public, this makes it the active one.
