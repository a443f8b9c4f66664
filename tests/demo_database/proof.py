"""The proof: a cluster, a PostgreSQL and two instances, each killed, and both sides compared."""

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from unittest.mock import patch

import asyncpg
from committed_records import decided_records
from source_tree import ROOT

from aiosemel import SemelClient
from aiosemel.database import create_tables
from aiosemel.database.asyncpg import AsyncpgDatabase
from demo_database.application import GROUP, LEDGER, ORDERS, RECEIPTS, URL
from semel_cli.demo.chaos import carry_out, plan_kills
from semel_cli.demo.input import Orders
from semel_cli.demo.processes import JobProcesses
from semel_cli.demo.topics import PARTITIONS, SETTINGS, Job
from semel_local import ProcessCluster
from semel_runtime.testing.postgres import PostgresCluster, PostgresServer

JOB = Job(
    title="A ledger and receipts",
    name="ledger",
    module="demo_database.application",
    orders=ORDERS,
    income=RECEIPTS,
    group=GROUP,
    loaded_first=0.6,
)
DATABASE = "postgresql"
PATIENCE_S = 40.0
"""How long a transaction may stay prepared, or the ledger the same, before the proof fails."""
_LOOK_S = 0.05
_CHUNK_LINES = 2_000
Line = tuple[int, Decimal]
"""A line of an order, by its number, and its price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Both sides, when all work was done."""

    ledger: Counter[Line]
    receipts: Counter[Line]
    kills: Counter[str]
    took_s: float

    def is_exact(self, orders: Orders) -> bool:
        """Whether both sides have each line of the orders once."""
        expected = Counter((line.line, Decimal(line.price)) for line in orders.lines)
        return self.ledger == self.receipts == expected


async def prove(orders: Orders, folder: Path, seed: int, *, rounds: int) -> Outcome:
    """Let the orders through, and kill every process ``rounds`` times meanwhile.

    Raises TimeoutError if the ledger stands still, or a transaction stays prepared, for 40 s.
    """
    began = time.monotonic()
    random = Random(seed)
    with PostgresCluster(standbys=0) as postgres:
        url = postgres.primary.url()
        await _make_tables(url)
        path = f"{ROOT / 'tests'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        with patch.dict(os.environ, {URL: url, "PYTHONPATH": path}):
            cluster = ProcessCluster(folder / "cluster", brokers=2, settings=SETTINGS)
            async with cluster, SemelClient(cluster.bootstrap) as client:
                stage = _Stage(JobProcesses(cluster, JOB, folder, lambda _: None), postgres.primary)
                course = _Course(client, url, orders)
                await _work(stage, course, random, rounds=rounds)
                await _nothing_prepared(client)
                return Outcome(
                    ledger=await course.ledger(),
                    receipts=await _receipts(client),
                    kills=stage.kills,
                    took_s=time.monotonic() - began,
                )


async def _make_tables(url: str) -> None:
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool:
        database = AsyncpgDatabase(pool)
        await create_tables(database)
        async with database.transaction() as transaction:
            await transaction.execute(LEDGER)


async def _work(stage: "_Stage", course: "_Course", random: Random, *, rounds: int) -> None:
    """Load the orders, let the instances work, and kill, until the ledger has every line."""
    for topic in (ORDERS, RECEIPTS):
        await course.client.admin().create_topic(topic, partitions=PARTITIONS)
    lines = len(course.orders.lines)
    plan = plan_kills(stage.victims, lines, random, rounds=rounds, loaded_first=JOB.loaded_first)
    await course.load_up_to(int(lines * JOB.loaded_first))
    async with stage.processes:
        await stage.processes.start_instances()
        await carry_out(plan, stage, course, random)
        await course.load_up_to(lines)
        await course.reached(lines)


class _Stage:
    """The processes of the job, and PostgreSQL. Implements ``Stage``."""

    def __init__(self, processes: JobProcesses, postgres: PostgresServer) -> None:
        self.processes = processes
        self._postgres = postgres
        self._postgres_kills = 0

    @property
    def victims(self) -> tuple[str, ...]:
        """Every process that can be killed."""
        return (*self.processes.victims, DATABASE)

    @property
    def kills(self) -> Counter[str]:
        """How often each was killed."""
        return self.processes.kills + Counter({DATABASE: self._postgres_kills})

    async def wait_ready(self, name: str) -> None:
        """Wait until a process does its work."""
        if name != DATABASE:
            await self.processes.wait_ready(name)

    async def kill(self, name: str) -> None:
        """Kill a process as ``kill -9`` does."""
        if name == DATABASE:
            self._postgres_kills += 1
            await asyncio.to_thread(self._postgres.kill)
        else:
            await self.processes.kill(name)

    async def start(self, name: str) -> None:
        """Start it again."""
        if name == DATABASE:
            await asyncio.to_thread(self._postgres.start)
        else:
            await self.processes.start(name)


class _Course:
    """Orders go in, and the ledger grows. Implements ``Course``."""

    def __init__(self, client: SemelClient, url: str, orders: Orders) -> None:
        self.client = client
        self.orders = orders
        self._url = url
        self._producer = client.producer()
        self._loaded = 0

    async def load_up_to(self, lines: int) -> None:
        """Send order lines until there are so many; each is stored once, despite all kills."""
        while self._loaded < lines:
            end = min(lines, self._loaded + _CHUNK_LINES)
            chunk = self.orders.lines[self._loaded : end]
            values, keys = [line.value for line in chunk], [line.key for line in chunk]
            await (await self._producer.send_columns(ORDERS, values, keys=keys))
            self._loaded = end

    async def reached(self, lines: int) -> None:
        """Wait until the ledger has so many lines. Raises TimeoutError if it stands still."""
        booked = await self._booked()
        while booked < lines:
            async with asyncio.timeout(PATIENCE_S):
                booked = await self._more_than(booked)

    async def ledger(self) -> Counter[Line]:
        """Return all lines of the ledger."""
        async with self._connection() as connection:
            rows = await connection.fetch("SELECT line, price FROM ledger")
        return Counter((row["line"], row["price"]) for row in rows)

    async def _more_than(self, booked: int) -> int:
        while True:
            now = await self._booked()
            if now > booked:
                return now
            await asyncio.sleep(_LOOK_S)

    async def _booked(self) -> int:
        """Return the number of lines in the ledger; waits while PostgreSQL is away."""
        while True:
            try:
                async with self._connection() as connection:
                    return int(await connection.fetchval("SELECT count(*) FROM ledger"))
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await asyncio.sleep(_LOOK_S)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
        connection = await asyncpg.connect(self._url)
        try:
            yield connection
        finally:
            await connection.close()


async def _nothing_prepared(client: SemelClient) -> None:
    """Wait until every transaction is decided. Raises TimeoutError after 40 s."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if not await client.admin().list_prepared_transactions():
                return
            await asyncio.sleep(_LOOK_S)


async def _receipts(client: SemelClient) -> Counter[Line]:
    """Return all receipts that readers see."""
    places = [(RECEIPTS, number) for number in range(PARTITIONS)]
    receipts = [json.loads(each.value or b"") for each in await decided_records(client, places)]
    return Counter((each["line"], Decimal(each["price"])) for each in receipts)
