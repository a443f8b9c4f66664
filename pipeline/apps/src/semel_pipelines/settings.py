"""How Spark is started here: its Java, the Python of its workers, and its session."""

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from semel_pipelines.java import java_home
from semel_pipelines.spark_home import spark_home

_LOOPBACK = ("local", "spark://127.", "spark://localhost")
"""Masters of this machine: any other needs a driver with an address that its executors reach."""


def process_environment(master: str) -> Mapping[str, str]:
    """Return what processes of Spark must inherit, where the environment does not say it yet.

    Without, workers may run another Python than this one.
    """
    wanted = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if not os.environ.get("PYSPARK_PYTHON"):  # Another Python may have no PySpark.
        wanted["SPARK_HOME"] = spark_home()
    if master.startswith(_LOOPBACK):
        wanted["SPARK_LOCAL_IP"] = "127.0.0.1"
    home = java_home(dict(os.environ))
    if home is not None:
        wanted["JAVA_HOME"] = home
    return {name: value for name, value in wanted.items() if not os.environ.get(name)}


def session(
    name: str,
    master: str = "local[2]",
    conf: Mapping[str, str] | None = None,
    *,
    remote: str | None = None,
) -> SparkSession:
    """Start Spark, or return the session that is there. Stop it with ``stop()``.

    ``remote`` is the address of a Spark Connect server, ``sc://host:port``, or a master for which
    one is started; then ``master`` is not used.
    """
    os.environ.update(process_environment(remote or master))
    settings = {
        "spark.app.name": name,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.unix.domain.socket.enabled": "true",
        **(conf or {}),
    }
    if remote and remote.startswith("sc://"):  # The server has its own, and refuses to change them.
        settings = {key: value for key, value in settings.items() if key.startswith("spark.sql.")}
    builder = SparkSession.builder.remote(remote) if remote else SparkSession.builder.master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
