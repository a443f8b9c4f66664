"""PostgreSQL under the journals of a run, and its faults: one at a time.

A primary that is killed leaves its place to the standby that has most, which takes that both can be
asked. So a standby that was stopped is started again before anything else happens.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random

from semel_runtime.testing.postgres import PostgresCluster, PostgresServer


class Database:
    """A primary and two standbys, which run."""

    def __init__(self, servers: PostgresCluster) -> None:
        self._servers = servers
        self.turn = asyncio.Lock()
        """A fault holds it, and leaves the database whole for the next fault."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The settings with which a service keeps its journal here."""
        return {"SEMEL_JOURNAL_URL": self._servers.url()}

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
        """Pause all standbys: the primary gets no confirmation meanwhile."""
        for standby in self._servers.standbys:
            standby.pause()
        try:
            yield
        finally:
            for standby in self._servers.standbys:
                standby.resume()


@asynccontextmanager
async def open_database() -> AsyncIterator[Database]:
    """Start a primary and two standbys, and stop them in the end."""
    servers = PostgresCluster()
    await asyncio.to_thread(servers.__enter__)
    try:
        yield Database(servers)
    finally:
        await asyncio.to_thread(servers.close)
