"""Pools of a fake cluster, and blocks that run until a test lets them end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from producer_harness import QUICK, FakeCluster, elapse, open_client

from aiosemel import (
    PoolOptions,
    ProducerOptions,
    TransactionPool,
)
from semel.coordinator.v1.transactions_pb2 import InitProducerIdRequest

PATIENT = PoolOptions(acquire_timeout_ms=60_000)


@asynccontextmanager
async def pool_of(
    fake: FakeCluster,
    size: int,
    options: PoolOptions | None = None,
    producer_options: ProducerOptions = QUICK,
) -> AsyncIterator[TransactionPool]:
    """Open a pool of a client of its own."""
    async with (
        open_client(fake) as client,
        client.transactions(
            "orders", size=size, options=options, producer_options=producer_options
        ) as pool,
    ):
        yield pool


class Blocks:
    """Blocks of one pool in tasks of their own."""

    def __init__(self, pool: TransactionPool, group: asyncio.TaskGroup) -> None:
        self.pool = pool
        self.group = group
        self.begun: list[str] = []
        """In their order."""

    async def enter(self, name: str) -> "Block":
        """Start a block, and let it come as far as it can."""
        block = Block(self, name)
        await elapse(0.1)
        return block


class Block:
    """One block, which ends when the test says so."""

    def __init__(self, blocks: Blocks, name: str) -> None:
        self._blocks = blocks
        self._name = name
        self._end = asyncio.Event()
        self.task = blocks.group.create_task(self._run())

    async def end(self) -> None:
        """Let it end, and wait for that."""
        self._end.set()
        await asyncio.wait([self.task])

    async def cancel(self) -> None:
        """Cancel its task, and wait for its end."""
        self.task.cancel()
        await asyncio.wait([self.task])

    async def _run(self) -> None:
        async with self._blocks.pool.transaction() as txn:
            self._blocks.begun.append(self._name)
            await txn.send("t", self._name.encode(), partition=0)
            await self._end.wait()


@asynccontextmanager
async def blocks_of(pool: TransactionPool) -> AsyncIterator[Blocks]:
    async with asyncio.TaskGroup() as group:
        yield Blocks(pool, group)


async def send(pool: TransactionPool, value: bytes) -> None:
    """Send one record in a transaction."""
    async with pool.transaction() as txn:
        await txn.send("t", value, partition=0)


async def send_and(
    pool: TransactionPool, value: bytes, then: Callable[[], Awaitable[object] | object]
) -> None:
    """Send one record, wait until it is stored, and do something more, all in a transaction."""
    async with pool.transaction() as txn:
        await txn.send_and_wait("t", value, partition=0)
        done = then()
        if isinstance(done, Awaitable):
            await done


def divide() -> int:
    """Raise ZeroDivisionError."""
    return 1 // 0


def visible(fake: FakeCluster) -> set[bytes | None]:
    return set(fake.visible("t", 0))


def inits(fake: FakeCluster) -> list[str]:
    """Return the transactional ids that were taken over, in their order."""
    return [request.transactional_id for request in fake.asked(InitProducerIdRequest)]
