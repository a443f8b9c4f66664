"""Spark's home: the installed PySpark, without the archive of its Python code.

Spark puts that archive before all else on the path of every Python that it starts, and what comes
from an archive is compiled at each start, for a second of processor time. The same code, installed,
is compiled already.
"""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

import pyspark

from semel_pipelines.kept_folder import kept_folder

_ARCHIVES = "python"
"""The folder with the archive."""


@cache
def spark_home() -> str:
    """Return a folder of links that is Spark's home, and the same for all processes of a user."""
    installed = Path(pyspark.__file__).parent
    home = kept_folder("spark", os.fspath(installed))
    for path in installed.iterdir():
        if path.is_dir() and path.name != _ARCHIVES:
            with suppress(FileExistsError):
                (home / path.name).symlink_to(path)
    return os.fspath(home)
