"""The distribution of tests over worker processes: file by file, the long files first.

All tests of Spark are one unit, and the first one. They share one session, and PySpark forks its
process to start, which gRPC does not survive after its first use. Then the files come whose tests
start engines or are slow, some for minutes. The quick files are last, so that workers end together.
Files of one turn keep the order of `testpaths`.
"""

from xdist.scheduler import LoadFileScheduling

SPARK = "pipeline/tests/"


def turn(nodeid: str, *, is_long: bool) -> int:
    """Return the turn of a test, by whether some test of its file is long; the lowest is first."""
    if nodeid.startswith(SPARK):
        return 0
    return 1 if is_long else 2


class FileScheduling(LoadFileScheduling):
    """xdist's schedule by file, except for Spark."""

    def _split_scope(self, nodeid: str) -> str:
        return SPARK if nodeid.startswith(SPARK) else nodeid.partition("::")[0]
