"""Journals on PostgreSQL: beside SQLite's, and how long a fail-over takes.

The database is a primary with two synchronous standbys on the same machine.
"""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeAlias

from aiosemel import ProducerOptions, SemelClient, TransactionAbortedError, TransactionalProducer
from bench import semel_alone
from bench.measure import Figure
from bench.topics import fresh_topic
from semel_local import ProcessCluster
from semel_local.processes import StartOptions
from semel_local.supervised import supervised
from semel_runtime.testing.postgres import PostgresCluster

KILLS = 10
_IMPATIENT = ProducerOptions(request_timeout_ms=2_000)

Mend: TypeAlias = Callable[[], None]
"""The repairs after a kill, once its time has been taken."""


async def postgres() -> list[Figure]:
    """Run small transactions on both engines, one after the other; ratios come last."""
    with tempfile.TemporaryDirectory() as folder, PostgresCluster() as database:
        async with (
            ProcessCluster(Path(folder, "sqlite")) as sqlite,
            ProcessCluster(Path(folder, "postgres"), start_options=_on(database)) as other,
        ):
            ours = await _small(sqlite)
            theirs = await _small(other)
    rates = theirs[0].value / ours[0].value, theirs[2].value / ours[2].value
    return [
        *(replace(our, name=f"SQLite, {our.name}", goal="") for our in ours),
        *(replace(each, name=f"PostgreSQL, {each.name}", goal="") for each in theirs),
        Figure(name="64 producers, of SQLite's rate", value=rates[0], unit="times", goal="≥ 0.4"),
        Figure(name="commit p50, of SQLite's", value=rates[1], unit="times", goal="≤ 3"),
    ]


async def _small(cluster: ProcessCluster) -> list[Figure]:
    return [
        *await semel_alone.many_producers(cluster.bootstrap),
        *await semel_alone.one_producer(cluster.bootstrap),
    ]


async def fail_over() -> list[Figure]:
    """Kill who a producer writes to, again and again; each time, time the way to its next commit.

    A service that is killed is started on an empty disk at once; for a primary, a standby is
    promoted.
    """
    with tempfile.TemporaryDirectory() as folder, PostgresCluster() as database:
        async with (
            supervised(Path(folder), environment=_environment(database)) as on,
            SemelClient(on.cluster.bootstrap) as client,
            client.transactional_producer("fail-over", options=_IMPATIENT) as producer,
        ):
            topic = await fresh_topic(client, 1)
            await producer.init_transactions()
            commit = partial(_commit, producer, topic)
            return [
                *await _time("broker moved", partial(_move, on.cluster, "broker-0"), commit),
                *await _time(
                    "coordinator moved", partial(_move, on.cluster, "coordinator-0"), commit
                ),
                *await _time("primary killed", partial(_promote, database), commit),
            ]


async def _time(
    name: str, kill: Callable[[], Awaitable[Mend]], commit: Callable[[], Awaitable[None]]
) -> list[Figure]:
    times_ms = []
    for _ in range(KILLS):
        await commit()
        killed = time.perf_counter()
        mend = await kill()
        await commit()
        times_ms.append((time.perf_counter() - killed) * 1000)
        mend()
    return [
        Figure(name=f"{name}, to the next commit", value=median(times_ms), unit="ms"),
        Figure(name=f"{name}, the worst of {KILLS}", value=max(times_ms), unit="ms"),
    ]


async def _commit(producer: TransactionalProducer, topic: str) -> None:
    """Commit a transaction of one record, with as many attempts as it takes."""
    while True:
        await producer.begin_transaction()
        try:
            await producer.send(topic, b"value", partition=0)
            return await producer.commit()
        except TransactionAbortedError:
            await producer.abort()


async def _move(cluster: ProcessCluster, name: str) -> Mend:
    await cluster.kill(name)
    shutil.rmtree(cluster.folder / name, ignore_errors=True)
    await cluster.start(name, wait=False)
    return lambda: None


async def _promote(database: PostgresCluster) -> Mend:
    killed = await asyncio.to_thread(database.fail_over)
    return lambda: database.restore(killed)


def _on(database: PostgresCluster) -> Callable[[object], StartOptions]:
    options = StartOptions(environment=_environment(database))
    return lambda _: options


def _environment(database: PostgresCluster) -> Mapping[str, str]:
    return {"SEMEL_JOURNAL_URL": database.url()}
