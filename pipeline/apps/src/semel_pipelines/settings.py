"""How Spark is started here: its Java, the Python of its workers, and its session."""

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from semel_pipelines.java import java_home


def prepare_environment() -> None:
    """Set what Spark's processes inherit. Without, its workers may run another Python than this."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    home = java_home(dict(os.environ))
    if home is not None:
        os.environ["JAVA_HOME"] = home


def session(
    name: str, master: str = "local[2]", conf: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark, or return the session that is there. Stop it with ``stop()``."""
    prepare_environment()
    builder = SparkSession.builder.appName(name).master(master)
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.unix.domain.socket.enabled": "true",
        **(conf or {}),
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
