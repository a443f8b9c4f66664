"""What all tests of the pipeline share: one Spark session and one cluster for the whole run."""

import os
from collections.abc import Iterator
from pathlib import Path

import cluster as clusters
import pytest
from cluster import Cluster
from pyspark.sql import SparkSession

from semel_pipelines.settings import session

BRISK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For virtual machines that live for seconds: a second compiler would take more than it gives."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A Spark of this machine, with two cores; its workers find the helpers of the tests."""
    os.environ["JDK_JAVA_OPTIONS"] = BRISK  # Of the processes that tests start, too.
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    spark = session("tests", conf={"spark.ui.showConsoleProgress": "false"})
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def semel(
    spark: SparkSession,  # noqa: ARG001 - it comes first
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    """A cluster with two brokers. Tests that kill services start their own.

    PySpark forks this process to start it, which gRPC does not survive.
    """
    with clusters.cluster(tmp_path_factory.mktemp("semel")) as started:
        yield started
