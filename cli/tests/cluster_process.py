"""A cluster in a process of its own, for commands that bring their own event loop.

As a program, it writes the bootstrap address to standard output, and serves until its input ends.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def cluster_process() -> Iterator[str]:
    """Run a cluster; yields its bootstrap address."""
    command = [sys.executable, str(Path(__file__))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip()
        process.stdin.close()


async def _serve() -> None:
    from semel_local import LocalCluster  # noqa: PLC0415 - only the program has a cluster

    async with LocalCluster(brokers=2) as cluster:
        sys.stdout.write(f"{cluster.bootstrap}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve())
