"""A standalone cluster of Spark on this machine: a master and workers, each a process of its own.

They are Spark's own classes, as on any cluster; their executors are processes too, and die alone.
"""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import psutil

from semel_local.ports import free_port, port_range
from semel_local.process import ManagedProcess, tail
from semel_pipelines.settings import process_environment
from semel_pipelines.spark_home import spark_home

HOST = "127.0.0.1"
_START_TIMEOUT_S = 90.0
_STOP_GRACE_S = 5.0
_POLL_S = 0.1
_DEPLOY = "org.apache.spark.deploy"
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


class SparkClusterError(Exception):
    """A process of Spark did not start."""


class SparkCluster:
    """A master and some workers; ``async with`` starts them, waits for them, and stops them."""

    def __init__(self, folder: Path, *, workers: int = 2, cores: int = 2) -> None:
        """Do no I/O yet. Each worker offers so many cores, whatever the machine has."""
        self._folder = folder
        self._count = workers
        self._cores = cores
        self._master: ManagedProcess | None = None
        self._workers: list[ManagedProcess] = []
        self.url = ""
        """For the option ``--master`` of applications."""

    async def __aenter__(self) -> Self:
        port = free_port(port_range())
        self.url = f"spark://{HOST}:{port}"
        arguments = ("--host", HOST, "--port", str(port), "--webui-port", "0")
        self._master = self._process("master", f"{_DEPLOY}.master.Master", arguments)
        self._workers = [self._worker(number) for number in range(self._count)]
        try:
            await self._start(self._master, "Starting Spark master at")
            async with asyncio.TaskGroup() as group:
                for worker in self._workers:
                    starting = self._start(worker, "Successfully registered with master")
                    group.create_task(starting, name=f"start {worker.name}")
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()

    def executors(self, mark: str) -> Sequence[psutil.Process]:
        """Return the executors of the application whose executors have this in their command."""
        return [
            child
            for worker in self._workers
            if worker.pid
            for child in _children(worker.pid)
            if _is_executor(child, mark)
        ]

    def _worker(self, number: int) -> ManagedProcess:
        work = self._folder / f"worker-{number}"
        arguments = (
            *("--host", HOST, "--webui-port", "0", "--work-dir", os.fspath(work)),
            *("--cores", str(self._cores), "--memory", "4g", self.url),
        )
        return self._process(f"worker-{number}", f"{_DEPLOY}.worker.Worker", arguments)

    def _process(self, name: str, kind: str, arguments: Sequence[str]) -> ManagedProcess:
        home = Path(spark_home())
        environment = {
            **process_environment(self.url),
            "SPARK_HOME": os.fspath(home),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        command = (os.fspath(home / "bin" / "spark-class"), kind, *arguments)
        return ManagedProcess(name, command, self._folder / f"{name}.log", environment=environment)

    async def _start(self, process: ManagedProcess, sign: str) -> None:
        """Start a process, and wait until its log says that it is there."""
        await process.spawn()
        try:
            async with asyncio.timeout(_START_TIMEOUT_S):
                while sign not in process.log_path.read_text("utf-8", "replace"):
                    if not process.running:
                        break
                    await asyncio.sleep(_POLL_S)
                else:
                    return
        except TimeoutError:
            pass
        raise SparkClusterError(
            f"the {process.name} of Spark did not start; the end of {process.log_path}:"
            f"\n{tail(process.log_path)}"
        )

    async def _stop(self) -> None:
        """Stop workers before their master; executors end with their worker."""
        async with asyncio.TaskGroup() as group:
            for worker in self._workers:
                group.create_task(worker.stop(grace_s=_STOP_GRACE_S), name=f"stop {worker.name}")
        if self._master is not None:
            await self._master.stop(grace_s=_STOP_GRACE_S)


def _children(pid: int) -> Sequence[psutil.Process]:
    try:
        return psutil.Process(pid).children()
    except psutil.NoSuchProcess:
        return []


def _is_executor(process: psutil.Process, mark: str) -> bool:
    try:
        command = process.cmdline()
    except psutil.Error:
        return False
    return _EXECUTOR in command and any(mark in each for each in command)
