"""Spark's home has all of Spark, except the archive from which its Pythons would compile again."""

from pathlib import Path

import pyspark

from semel_pipelines.spark_home import spark_home


def test_the_home_has_the_programs_and_the_jars_and_not_the_archive() -> None:
    home, installed = Path(spark_home()), Path(pyspark.__file__).parent
    assert (home / "bin" / "spark-submit").samefile(installed / "bin" / "spark-submit")
    assert (home / "jars").samefile(installed / "jars")
    assert (installed / "python" / "lib").exists()
    assert not (home / "python").exists()
