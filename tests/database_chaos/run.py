"""All calls on one engine: a cluster, a database, and a lane for each call, side by side."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random

from aiosemel import SemelClient
from aiosemel.database import Database, create_tables
from database_chaos.application import TABLES, Start, open_database
from database_chaos.lanes import Lane, Sums, Tally
from database_chaos.steps import Call
from semel_local import LocalCluster
from semel_local.layout import Settings
from semel_runtime.testing.mariadb import MariadbServer
from semel_runtime.testing.postgres import PostgresCluster


class Engine(StrEnum):
    """A database to run on."""

    SQLITE = "sqlite"
    POSTGRES = "postgres"
    MARIADB = "mariadb"


@dataclass(frozen=True, slots=True)
class Report:
    """What has happened at each step, and what both sides of all calls have."""

    tallies: Mapping[str, Tally]
    sums: Mapping[Call, Sums]


async def run(
    engine: Engine, folder: Path, *, rounds: int, seed: int, calls: Collection[Call] = tuple(Call)
) -> Report:
    """Kill at each step so many times.

    Raises DifferenceError, as a part of an exception group.
    """
    async with stage(engine, folder) as place:
        lanes: dict[Call, Lane] = {}
        async with asyncio.TaskGroup() as group:
            for call in calls:
                chance = Random(f"{seed} {call}")
                lanes[call] = Lane(place.start(call), place.client, place.database, chance)
                group.create_task(lanes[call].run(rounds), name=call)
        return Report(
            {step: tally for lane in lanes.values() for step, tally in lane.tallies.items()},
            {call: lane.sums for call, lane in lanes.items()},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A cluster and a database, where applications run."""

    where: str
    """A URL of PostgreSQL or MariaDB, or a file of SQLite."""
    database: Database[object]
    bootstrap: str
    client: SemelClient

    def start(self, call: Call, run: str = "") -> Start:
        """Return how a process starts here."""
        return Start(call=call, database=self.where, bootstrap=self.bootstrap, run=run)


@asynccontextmanager
async def stage(
    engine: Engine, folder: Path, settings: Settings | None = None
) -> AsyncIterator[Stage]:
    """Start cluster and database, and make the tables."""
    async with (
        _database(engine, folder) as where,
        open_database(where) as database,
        LocalCluster(folder=folder / "cluster", settings=settings) as cluster,
        cluster.client() as client,
    ):
        await create_tables(database)
        async with database.transaction() as transaction:
            for table in TABLES:
                await transaction.execute(table)
        yield Stage(where=where, database=database, bootstrap=cluster.bootstrap, client=client)


@asynccontextmanager
async def _database(engine: Engine, folder: Path) -> AsyncIterator[str]:
    match engine:
        case Engine.SQLITE:
            yield str(folder / "application.db")
        case Engine.POSTGRES:
            servers = PostgresCluster(standbys=0)
            await asyncio.to_thread(servers.__enter__)
            try:
                yield servers.primary.url()
            finally:
                await asyncio.to_thread(servers.close)
        case Engine.MARIADB:
            server = MariadbServer()
            await asyncio.to_thread(server.__enter__)
            try:
                yield server.url("mysql")
            finally:
                await asyncio.to_thread(server.close)
