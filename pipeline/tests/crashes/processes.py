"""Spark as processes of its own: jobs that may be killed, and a standalone cluster."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pyspark

from semel_pipelines.settings import process_environment

RUN_S = 600.0
"""How long a run of a job may take; then the scenario has failed."""
_TESTS = Path(__file__).parent.parent
_SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


class Run:
    """One run of a job, in a session of processes of its own."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "crashes.job", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=environment(),
            )

    def wait(self, timeout_s: float = RUN_S) -> int | None:
        """Return the exit status; None if it goes on."""
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        self.kill()  # What it has left behind.
        return status

    def kill(self) -> None:
        """Kill all processes of the run at once."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@contextmanager
def standalone(folder: Path, random: Random) -> Iterator[str]:
    """Start a master and two workers, on addresses of their own; returns the master's URL."""
    port = random.randrange(20_000, 30_000)
    url = f"spark://127.0.0.1:{port}"
    master = [
        *("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"),
        *("--port", str(port), "--webui-port", "0"),
    ]
    workers = [
        [
            *("org.apache.spark.deploy.worker.Worker", "--host", host, "--cores", "2"),
            *("--memory", "2g", "--webui-port", "0", "--work-dir", str(folder / host), url),
        ]
        for host in ("127.0.0.1", "127.0.0.2")
    ]
    started: list[subprocess.Popen[bytes]] = []
    try:
        with (folder / "standalone.log").open("ab") as output:
            started.extend(
                subprocess.Popen(
                    [str(_SPARK_CLASS), *command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    env=environment(),
                )
                for command in (master, *workers)
            )
        yield url
    finally:
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def environment() -> dict[str, str]:
    """Return what processes of Spark need to find Java, this Python, and the helpers of tests."""
    return {**os.environ, **process_environment("local"), "PYTHONPATH": str(_TESTS)}
