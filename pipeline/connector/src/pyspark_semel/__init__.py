"""Semel for Apache Spark: a source, and a sink that writes exactly once, batch and streaming.

Spark finds this package by its name, where it is installed beside PySpark: ``format("semel")``
works without more. Where it comes another way (``--py-files``), call ``register``.
"""

from pyspark.sql import SparkSession

from pyspark_semel.data_source import SemelDataSource

DefaultSource = SemelDataSource
"""What Spark looks for in packages whose names begin with ``pyspark_``."""

__all__ = ["DefaultSource", "SemelDataSource", "register"]


def register(spark: SparkSession) -> None:
    """Make ``format("semel")`` known to a session that has not found it by itself."""
    spark.dataSource.register(SemelDataSource)
