"""The distribution of tests over worker processes: file by file, the long files first.

All tests of Spark are one unit, and the first one. They share one session, and PySpark forks its
process to start, which gRPC does not survive after its first use. Then the files come whose tests
start engines or are slow, some for minutes. The quick files are last, so that workers end together.
Files of one turn keep the order of `testpaths`.

The files that read the whole source tree are one unit, too: the process that parses it keeps it. So
are the files of a folder that share a database server, which takes seconds to make and to remove.
"""

from xdist.scheduler import LoadFileScheduling

SPARK = "pipeline/tests/"

SERVERS = ("libs/runtime/tests/journal/", "tests/database/")
"""The folders whose tests share servers of PostgreSQL and MariaDB."""

TREE = (
    "tests/test_import_circles.py",
    "tests/test_prose.py",
    "tests/test_pure_modules_page.py",
    "tests/test_scenarios.py",
    "tests/test_tidy.py",
)
"""The files whose tests use `source_tree`."""


def turn(nodeid: str, *, is_long: bool) -> int:
    """Return the turn of a test, by whether some test of its file is long; the lowest is first."""
    if nodeid.startswith(SPARK):
        return 0
    return 1 if is_long else 2


def unit(nodeid: str) -> str:
    """Return the name of the tests that one process must run together with a test."""
    for folder in (SPARK, *SERVERS):
        if nodeid.startswith(folder):
            return folder
    path = nodeid.partition("::")[0]
    return "source tree" if path in TREE else path


class FileScheduling(LoadFileScheduling):
    """xdist's schedule by file, except for the files that share something."""

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)
