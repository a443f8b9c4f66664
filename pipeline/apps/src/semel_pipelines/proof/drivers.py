"""The pipelines as processes: each a driver of its own, with its executors in Spark's cluster."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from semel_local.process import ManagedProcess
from semel_pipelines.proof.spark_cluster import SparkCluster

_POLL_S = 0.1
_FAILURES_MAX = 5
_PROGRESS_TIMEOUT_S = 300.0
_BRISK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Of a Java that lives for a minute, on few cores."""


class DriverError(Exception):
    """A driver does not do its work; the message is for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A pipeline to run."""

    name: str
    module: str
    options: Mapping[str, str]


class Driver:
    """A driver that is started, killed, and started again from its checkpoint."""

    def __init__(
        self, pipeline: Pipeline, cluster: SparkCluster, bootstrap: str, folder: Path
    ) -> None:
        """Do not start it yet."""
        self.name = pipeline.name
        self.checkpoint = folder / "checkpoints" / pipeline.name
        self._cluster = cluster
        self._mark = f"-Dsemel.pipeline={pipeline.name}"
        options = {
            "bootstrap": bootstrap,
            "master": cluster.url,
            "checkpoint": os.fspath(self.checkpoint),
            **pipeline.options,
        }
        command = (
            *(sys.executable, "-m", pipeline.module),
            *(f"--{name}={value}" for name, value in options.items()),
            *(f"--conf={name}={value}" for name, value in _conf(self._mark).items()),
        )
        self._process = ManagedProcess(self.name, command, folder / f"{self.name}.log")
        self._watchers = asyncio.TaskGroup()
        self._batches_before = 0
        self._done = asyncio.Event()
        self.failures = 0
        """How often it has ended by itself, and was started again, as any supervisor would do."""

    @property
    def log_path(self) -> Path:
        """The file with its output."""
        return self._process.log_path

    @property
    def running(self) -> bool:
        """Whether it is there."""
        return self._process.running

    @property
    def batches(self) -> int:
        """How many micro-batches are complete."""
        commits = self.checkpoint / "commits"
        return sum(path.name.isdigit() for path in commits.iterdir()) if commits.exists() else 0

    async def start(self) -> None:
        """Start it, from its checkpoint if there is one."""
        self._batches_before = self.batches
        await self._process.spawn()
        self._watchers.create_task(self._watch(), name=f"watch {self.name}")

    async def kill(self) -> None:
        """Kill it as ``kill -9`` does: Python, and the Java that it has started."""
        if self._process.pid is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.kill()

    async def working(self) -> None:
        """Wait until it has completed a micro-batch since it was started. Raises DriverError."""
        try:
            async with asyncio.timeout(_PROGRESS_TIMEOUT_S):
                while self.batches <= self._batches_before:  # noqa: ASYNC110 - of another process
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise DriverError(
                f"{self.name} has completed no micro-batch for {_PROGRESS_TIMEOUT_S:g} s:"
                f" see {self.log_path}"
            ) from None

    async def kill_executor(self) -> None:
        """Kill one of its executors as ``kill -9`` does, as soon as there is one.

        Raises DriverError.
        """
        try:
            async with asyncio.timeout(_PROGRESS_TIMEOUT_S):
                while not (found := self._cluster.executors(self._mark)):  # noqa: ASYNC110 - see above
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise DriverError(
                f"{self.name} has had no executor for {_PROGRESS_TIMEOUT_S:g} s:"
                f" see {self.log_path}"
            ) from None
        found[0].kill()

    async def finish(self) -> None:
        """Let it process the present records, and wait for its end. Raises DriverError."""
        await self.working()
        self._process.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_PROGRESS_TIMEOUT_S):
                await self._done.wait()
        except TimeoutError:
            raise DriverError(f"{self.name} does not end: see {self.log_path}") from None

    async def __aenter__(self) -> Self:
        await self._watchers.__aenter__()
        await self.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Kill it, if it has not ended."""
        await self.kill()
        await self._watchers.__aexit__(exc_type, exc, traceback)

    async def _watch(self) -> None:
        ended = await self._process.wait_unexpected()
        if ended is None:
            return
        if ended.exit_status == 0:
            self._done.set()
            return
        self.failures += 1
        if self.failures > _FAILURES_MAX:
            raise DriverError(str(ended))
        await self.start()


def _conf(mark: str) -> Mapping[str, str]:
    return {
        "spark.cores.max": "2",
        "spark.executor.cores": "1",
        "spark.executor.memory": "768m",
        "spark.driver.memory": "768m",
        "spark.speculation": "true",
        "spark.driver.extraJavaOptions": _BRISK,
        "spark.executor.extraJavaOptions": f"{_BRISK} {mark}",
    }
