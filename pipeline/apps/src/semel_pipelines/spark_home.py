"""Where Spark is: the PySpark that is installed, but for the archive of its Python code.

Spark puts that archive before all else on the path of every Python that it starts, and what comes
from an archive is compiled at each start, for a second of processor time. The same code, installed,
is compiled already.
"""

import os
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pyspark

_ARCHIVES = "python"
"""The folder with the archive."""


@cache
def spark_home() -> str:
    """Make a folder of links that is Spark's home; gone with the machine's temporary files."""
    home = Path(mkdtemp(prefix="semel-spark-"))
    for each in Path(pyspark.__file__).parent.iterdir():
        if each.is_dir() and each.name != _ARCHIVES:
            (home / each.name).symlink_to(each)
    return os.fspath(home)
