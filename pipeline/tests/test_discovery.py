"""Spark finds the format by the name of the package."""

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession


def test_spark_knows_the_format_without_being_told(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException) as raised:
        spark.read.format("semel").load()
    assert "DATA_SOURCE_NOT_FOUND" not in str(raised.value)
