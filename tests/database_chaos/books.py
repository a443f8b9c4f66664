"""Both sides of one application: the rows of its database and the records of its topic."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiosemel import ConsumerOptions, OffsetReset, SemelClient
from aiosemel.database import Database
from database_chaos.application import Start
from database_chaos.steps import Call

PARTITIONS = 2
AGREED_S = 90.0
"""Past this time after a kill, the two sides will not agree any more."""
PREPARED_S = 40.0
"""How long a transaction may be prepared after the kill of its process."""
_POLL_S = 0.05


class DifferenceError(Exception):
    """The two sides differ, or too late agree."""


class Books:
    """What an application was given, and what became of it."""

    def __init__(self, start: Start, client: SemelClient, database: Database[object]) -> None:
        self._start = start
        self._client = client
        self._database = database
        self._consumer = client.consumer(
            options=ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
        )
        self._sent: Counter[int] = Counter()
        """What readers of committed records have seen."""
        self.expected: set[int] = set()
        """The orders that were given."""

    @property
    def has_topic(self) -> bool:
        """Whether the call writes a topic."""
        return self._start.call is not Call.STORE

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Make the topics, and follow the one of receipts."""
        for topic in (self._start.orders, self._start.receipts):
            await self._client.admin().create_topic(topic, partitions=PARTITIONS)
        async with self._consumer:
            self._consumer.assign(
                [(self._start.receipts, partition) for partition in range(PARTITIONS)]
            )
            yield

    async def missing(self) -> list[int]:
        """Return the orders that the database does not have."""
        return sorted(self.expected - (await self.paid()).keys())

    async def agree(self, killed_at_s: float, go_on: Callable[[], Awaitable[None]]) -> float:
        """Wait until both sides have each order once, and nothing is prepared.

        ``go_on`` is called again and again meanwhile. Returns how long after the kill that was, in
        seconds. Raises DifferenceError.
        """
        while not await self._is_complete():
            await go_on()
            if time.monotonic() - killed_at_s > AGREED_S:
                raise DifferenceError(f"after {AGREED_S:g} s, {await self._difference()}")
            await asyncio.sleep(_POLL_S)
        admin, pattern = self._client.admin(), self._start.run
        while await admin.list_prepared_transactions(transactional_id_pattern=pattern):
            await go_on()
            if time.monotonic() - killed_at_s > PREPARED_S:
                raise DifferenceError(f"{pattern} has transactions prepared for {PREPARED_S:g} s")
            await asyncio.sleep(_POLL_S)
        return time.monotonic() - killed_at_s

    async def is_processed(self) -> bool:
        """Whether the database has all orders that were given."""
        return not await self.missing()

    async def paid(self) -> Counter[int]:
        """Return the orders in the database, with how often each is there."""
        query = "SELECT number FROM payment WHERE run = ?"
        async with self._database.transaction() as transaction:
            rows = await transaction.fetch(query, (self._start.run,))
        return Counter(int(str(number)) for (number,) in rows)

    async def received(self) -> Counter[int]:
        """Return the orders in the topic, with how often each is there."""
        while polled := await self._consumer.poll(500, 20):
            for records in polled.values():
                self._sent.update(int(record.value or b"") for record in records)
        return self._sent

    async def _is_complete(self) -> bool:
        paid, sent = await self.paid(), await self.received()
        for name, found in (("the database", paid), ("the topic", sent)):
            surplus = found - Counter(self.expected)
            if surplus:
                raise DifferenceError(f"{self._start.run}: {name} has too much: {surplus}")
        expected = Counter(self.expected)
        return paid == expected and (sent == expected or not self.has_topic)

    async def _difference(self) -> str:
        paid, sent = await self.paid(), await self.received()
        lacks = f"{self._start.run}: the database lacks {sorted(self.expected - paid.keys())}"
        if self.has_topic:
            lacks += f", the topic lacks {sorted(self.expected - sent.keys())}"
        return lacks
