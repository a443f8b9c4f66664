"""PostgreSQL under the journals of a run, and what happens to it: one thing at a time.

A primary that is killed leaves its place to the standby that has most, which takes that both can be
asked. So a standby that was stopped is started again before anything else happens.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from types import TracebackType
from typing import Self

from semel_runtime.testing.postgres import PostgresCluster, PostgresServer


class Database:
    """A primary and two standbys. ``async with`` starts them, and stops them."""

    def __init__(self) -> None:
        """Do no I/O yet."""
        self._servers = PostgresCluster()
        self._turn = asyncio.Lock()

    @property
    def environment(self) -> Mapping[str, str]:
        """What lets a service keep its journal here."""
        return {"SEMEL_JOURNAL_URL": self._servers.url()}

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._servers.__enter__)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self._servers.close)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until nothing is wrong with it, and keep others waiting."""
        async with self._turn:
            yield

    async def fail_over(self) -> PostgresServer:
        """Kill the primary and promote a standby; returns the killed one."""
        return await asyncio.to_thread(self._servers.fail_over)

    async def restore(self, killed: PostgresServer) -> None:
        """Let a killed primary become a standby."""
        await asyncio.to_thread(self._servers.restore, killed)

    @asynccontextmanager
    async def without_a_standby(self, random: Random) -> AsyncIterator[None]:
        """Stop one of the standbys: the other one confirms everything meanwhile."""
        standby = random.choice(self._servers.standbys)
        await asyncio.to_thread(standby.stop)
        try:
            yield
        finally:
            await asyncio.to_thread(standby.start)

    @asynccontextmanager
    async def without_replication(self) -> AsyncIterator[None]:
        """Let no standby go on: nobody confirms anything meanwhile."""
        for standby in self._servers.standbys:
            standby.pause()
        try:
            yield
        finally:
            for standby in self._servers.standbys:
                standby.resume()
