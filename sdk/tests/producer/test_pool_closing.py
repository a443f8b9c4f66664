"""How pools are opened and closed."""

import asyncio

import pytest
from network_faults import HoldReply, LoseRequest
from pool_harness import (
    blocks_of,
    send,
    send_and,
    visible,
)
from producer_harness import QUICK, FakeCluster, elapse, ends, open_client

from aiosemel import (
    PoolOptions,
    SemelClient,
)
from aiosemel.errors import (
    ClosedError,
    IllegalStateError,
    InvalidConfigError,
    RequestTimedOutError,
    TransactionAbortedError,
)


async def test_a_pool_that_is_not_open_says_so(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        pool = client.transactions("orders", size=2)
        with pytest.raises(ClosedError, match="the pool 'orders' is not open: enter it"):
            await send(pool, b"v")
        async with pool:
            await send(pool, b"v")
        with pytest.raises(ClosedError, match="the pool 'orders' is closed"):
            await send(pool, b"v")
        with pytest.raises(IllegalStateError, match="make another"):
            await pool.open()


async def test_opening_fails_with_the_error_itself(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        fake.then("InitProducerId", *(LoseRequest(),) * 100)
        pool = client.transactions("orders", size=2, producer_options=QUICK)
        with pytest.raises(RequestTimedOutError):
            await pool.open()
        await pool.close()


async def test_closing_waits_for_blocks_that_run(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        pool = client.transactions("orders", size=2)
        await pool.open()
        async with blocks_of(pool) as blocks:
            block = await blocks.enter("kept")
            closing = asyncio.create_task(pool.close())
            await elapse(1)
            assert not closing.done()
            with pytest.raises(ClosedError):
                await send(pool, b"late")
            await block.end()
            await closing
    assert visible(fake) == {b"kept"}


async def test_closing_aborts_blocks_that_run_for_too_long(fake: FakeCluster) -> None:
    options = PoolOptions(close_timeout_ms=1_000)
    async with open_client(fake) as client:
        pool = client.transactions("orders", size=1, options=options)
        await pool.open()
        with pytest.raises(TransactionAbortedError):
            await send_and(pool, b"lost", pool.close)
    assert visible(fake) == set()
    assert len(ends(fake)) == 1


async def test_a_client_closes_its_pools_and_waits_for_their_blocks(fake: FakeCluster) -> None:
    client = SemelClient("coordinator:1", connector=fake)
    await client.open()
    pool = client.transactions("orders", size=1)
    await pool.open()
    async with blocks_of(pool) as blocks:
        block = await blocks.enter("kept")
        closing = asyncio.create_task(client.close())
        await elapse(0.1)
        await block.end()
        await closing
    assert visible(fake) == {b"kept"}


async def test_closing_that_is_cancelled_waits_for_nothing(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        pool = client.transactions("orders", size=1)
        await pool.open()
        async with blocks_of(pool) as blocks:
            block = await blocks.enter("lost")
            fake.then("EndTxn", HoldReply(asyncio.Event()))
            closing = asyncio.create_task(pool.close())
            await elapse(0.1)
            began = asyncio.get_running_loop().time()
            closing.cancel()
            await asyncio.wait([closing])
            assert asyncio.get_running_loop().time() - began < 1
            assert closing.cancelled()
            block.task.cancel()
    assert visible(fake) == set()


@pytest.mark.parametrize(
    ("size", "instance", "sentence"),
    [
        (0, None, "size is 0, not a whole number from 1 on"),
        (True, None, "size is True, not a whole number from 1 on"),
        (8, "", "instance of the pool 'orders' is empty: None means no instance"),
    ],
)
async def test_a_pool_that_cannot_work_is_refused(
    fake: FakeCluster, size: int, instance: str | None, sentence: str
) -> None:
    async with open_client(fake) as client:
        with pytest.raises(InvalidConfigError, match=sentence):
            client.transactions("orders", size=size, instance=instance)
        with pytest.raises(InvalidConfigError, match="prefix is empty"):
            client.transactions("")
        with pytest.raises(InvalidConfigError, match="acquire_timeout_ms is -1"):
            PoolOptions(acquire_timeout_ms=-1)
