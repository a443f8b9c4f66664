"""The distribution of tests over worker processes: file by file, in the order of `testpaths`.

All tests of Spark are one unit, and the first one. They share one session, and PySpark forks its
process to start, which gRPC does not survive after its first use.
"""

from xdist.scheduler import LoadFileScheduling

SPARK = "pipeline/tests/"


class FileScheduling(LoadFileScheduling):
    """xdist's schedule by file, except for Spark."""

    def _split_scope(self, nodeid: str) -> str:
        return SPARK if nodeid.startswith(SPARK) else nodeid.partition("::")[0]
