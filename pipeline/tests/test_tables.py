"""Tables of Spark's catalog and paths are refused with what to do instead; views work."""

import pytest
from cluster import Cluster
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


def test_a_table_in_the_catalog_is_refused(spark: SparkSession, semel: Cluster) -> None:
    options = f"OPTIONS ('bootstrap.servers'='{semel.bootstrap}', subscribe='{semel.topic()}')"
    with pytest.raises(PySparkException, match="CREATE TABLE … USING semel is not supported"):
        spark.sql(f"CREATE TABLE orders USING semel {options}")
    with pytest.raises(PySparkException, match="Of a table in its catalog, Spark passes no"):
        spark.sql(f"CREATE TABLE orders USING semel {options} AS SELECT 'a' AS value")


def test_a_temporary_view_is_a_topic_in_sql(spark: SparkSession, semel: Cluster) -> None:
    topic = semel.topic()
    semel.send(topic, [b"a"])
    options = f"OPTIONS ('bootstrap.servers'='{semel.bootstrap}', subscribe='{topic}')"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW orders USING semel {options}")
    assert spark.sql("SELECT cast(value AS string) AS value FROM orders").first() == ("a",)


@pytest.mark.parametrize("path", ["/p", ["/p"]])
def test_a_path_to_read_is_refused(
    spark: SparkSession, semel: Cluster, path: str | list[str]
) -> None:
    given = {"bootstrap.servers": semel.bootstrap, "subscribe": semel.topic()}
    with pytest.raises(PySparkException, match=r"a topic has none: .* with the option subscribe"):
        spark.read.format("semel").options(**given).load(path)


def test_a_path_to_write_to_is_refused(spark: SparkSession, semel: Cluster) -> None:
    given = {"bootstrap.servers": semel.bootstrap, "topic": semel.topic()}
    frame = spark.range(1).selectExpr("'a' AS value")
    with pytest.raises(PySparkException, match=r"a topic has none: .* with the option topic"):
        frame.write.format("semel").mode("append").options(**given).save("/p")
