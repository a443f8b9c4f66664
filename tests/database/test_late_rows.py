"""Rows of an outbox in PostgreSQL whose transactions are long, and commit in any order."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from random import Random

import asyncpg
import pytest
import pytest_asyncio
from committed_records import decided_records

from aiosemel import RelayOptions, SemelClient
from aiosemel.database import Outbox
from database.layers import Layer, layer_named
from database.running import running, until
from semel_runtime.testing.postgres import PostgresCluster

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

WRITERS = 16
TRANSACTIONS = 25
"""Of each writer."""
ROWS = 25
"""Of each transaction: 10,000 in all."""
KEYS = 40
OPTIONS = RelayOptions(max_records=200, poll_interval_ms=5)


class Shop:
    """Writers that count up the events of keys, each key in one transaction at a time."""

    def __init__(self, url: str, outbox: Outbox, topic: str, random: Random) -> None:
        self._url = url
        self._outbox = outbox
        self._topic = topic
        self._random = random
        self._turns = defaultdict[int, asyncio.Semaphore](lambda: asyncio.Semaphore(1))
        self.committed: Counter[int] = Counter()
        """How many events each key has."""
        self.rolled_back = 0
        self.overtaken = 0
        """Transactions that committed after another one with later rows."""
        self._last_id = 0

    async def write(self) -> None:
        """Write as one writer does, in a connection of its own."""
        connection = await asyncpg.connect(self._url)
        try:
            for _ in range(TRANSACTIONS):
                key = self._random.randrange(KEYS)
                async with self._turns[key]:  # As a lock of the key's row would do it.
                    with suppress(ZeroDivisionError):
                        await self._transact(connection, key)
        finally:
            await connection.close()

    async def _transact(self, connection: "asyncpg.Connection[asyncpg.Record]", key: int) -> None:
        begin = self.committed[key]
        async with connection.transaction():
            for number in range(begin, begin + ROWS):
                value = b"%d %d" % (key, number)
                await self._outbox.send(connection, self._topic, value, key=b"%d" % key)
            last_id = await connection.fetchval("SELECT max(id) FROM semel_outbox")
            await asyncio.sleep(self._random.choice([0, 0, 0.02, 0.3]))
            if self._random.random() < 1 / 5:
                self.rolled_back += 1
                raise ZeroDivisionError
        self.committed[key] += ROWS
        self.overtaken += last_id < self._last_id
        self._last_id = max(self._last_id, last_id)


@pytest_asyncio.fixture(loop_scope="session")
async def layer(tmp_path: Path, postgres: PostgresCluster) -> AsyncIterator[Layer]:
    async with layer_named("asyncpg", tmp_path, postgres.primary.url) as layer:
        yield layer


async def test_every_row_is_sent_once_and_in_the_order_of_its_key(
    layer: Layer, postgres: PostgresCluster, client: SemelClient, topic: str, name: str
) -> None:
    ((database,),) = await layer.query("SELECT current_database()")
    outbox = Outbox(layer.database, name)
    shop = Shop(postgres.primary.url(database), outbox, topic, Random(7))

    async def is_empty() -> bool:
        return not await layer.query("SELECT id FROM semel_outbox LIMIT 1")

    relay = client.relay(outbox, transactional_id=name, options=OPTIONS, handle_signals=False)
    async with running(relay) as task:
        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(shop.write())
        await until(is_empty, task)
    assert shop.overtaken > 20
    assert shop.rolled_back > 20
    assert await events_of(client, topic) == {
        key: [*range(count)] for key, count in shop.committed.items() if count
    }


async def events_of(client: SemelClient, topic: str) -> dict[int, list[int]]:
    """Return the numbers of each key, in the order of the log."""
    places = [(topic, partition) for partition in range(2)]
    found = defaultdict[int, list[int]](list)
    for record in await decided_records(client, places):
        key, number = (record.value or b"").split()
        found[int(key)].append(int(number))
    return found
