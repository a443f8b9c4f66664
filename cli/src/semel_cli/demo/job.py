"""One run of a job: orders are loaded, instances work, processes are killed, income adds up."""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from semel_cli.demo.chaos import carry_out, plan_kills
from semel_cli.demo.input import Orders
from semel_cli.demo.log_reader import LogReader
from semel_cli.demo.processes import JobProcesses
from semel_cli.demo.progress import IncomeProgress
from semel_cli.demo.report import JobResult, sum_up
from semel_cli.demo.settling import all_consumed, settled_ends
from semel_cli.demo.topics import INSTANCES, PARTITIONS, Job
from semel_cli.demo.view import DemoView, JobState
from semel_common.wire.grpc_connection import GrpcConnector
from semel_local import ProcessCluster

if TYPE_CHECKING:
    from aiosemel import SemelClient

_CHUNK_LINES = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """Where jobs run."""

    cluster: ProcessCluster
    client: "SemelClient"
    folder: Path
    """For the logs of applications."""


class JobRun:
    """A job from the first order to the last cent. Implements ``Course``."""

    def __init__(
        self,
        place: Workplace,
        job: Job,
        orders: Orders,
        *,
        view: DemoView,
        random: Random,
        rounds: int,
    ) -> None:
        """Do no I/O yet. Each process is killed ``rounds`` times."""
        self._place = place
        self._job = job
        self._orders = orders
        self._view = view
        self._random = random
        self._connector = GrpcConnector()
        self._producer = place.client.producer()
        self._progress = IncomeProgress(
            LogReader(self._connector, place.cluster.bootstrap, job.income)
        )
        self._processes = JobProcesses(place.cluster, job, place.folder, view.killed)
        self._plan = plan_kills(
            self._processes.victims,
            len(orders.lines),
            random,
            rounds=rounds,
            loaded_first=job.loaded_first,
        )
        self._state = JobState(
            title=job.title,
            lines=len(orders.lines),
            kills=len(self._plan),
            tally=self._progress.tally,
            running=lambda: self._processes.running,
        )

    async def run(self) -> JobResult:
        """Run it. Raises JobError, SemelError."""
        began = time.monotonic()
        self._view.follow(self._state)
        client = self._place.client
        for topic in (self._job.orders, self._job.income):
            await client.admin().create_topic(topic, partitions=PARTITIONS)
        try:
            async with asyncio.TaskGroup() as group:
                follower = group.create_task(self._progress.follow(), name="follow the income")
                await self._work()
                ends = await settled_ends(client, self._job)
                await self._progress.caught_up(ends)
                follower.cancel()
        finally:
            await self._connector.close()
        return JobResult(
            title=self._job.title,
            orders=self._orders,
            tally=self._progress.tally,
            sums=await sum_up(client, self._job.income, ends),
            kills=self._processes.kills,
            took_s=time.monotonic() - began,
        )

    async def load_up_to(self, lines: int) -> None:
        """Send order lines until there are so many; each is stored once, despite all kills."""
        while self._state.loaded < lines:
            end = min(lines, self._state.loaded + _CHUNK_LINES)
            chunk = self._orders.lines[self._state.loaded : end]
            values, keys = [line.value for line in chunk], [line.key for line in chunk]
            await (await self._producer.send_columns(self._job.orders, values, keys=keys))
            self._state.loaded = end

    async def reached(self, lines: int) -> None:
        """Wait until there are so many lines of income. Raises JobError."""
        await self._progress.reached(lines)

    async def _work(self) -> None:
        """Load the orders, let the instances work, and kill, until every order is consumed."""
        lines = len(self._orders.lines)
        self._view.phase(f"{self._job.title}: {lines:,} order lines come in")
        await self.load_up_to(int(lines * self._job.loaded_first))
        self._view.phase(
            f"{INSTANCES} instances work, and are killed with all others: {len(self._plan)} kills"
        )
        async with self._processes as processes:
            await processes.start_instances()
            await carry_out(self._plan, processes, self, self._random)
            self._view.phase("All kills are done; the last orders come in")
            await self.load_up_to(lines)
            await all_consumed(self._place.client, self._job)
