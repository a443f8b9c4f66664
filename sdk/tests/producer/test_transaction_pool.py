"""Many transactions at once, each by a free producer of a pool."""

import pytest
from pool_harness import PATIENT, blocks_of, divide, inits, pool_of, send, send_and, visible
from producer_harness import FakeCluster, elapse, ends, open_client

from aiosemel import (
    PoolOptions,
)
from aiosemel.errors import (
    IllegalStateError,
    NoFreeProducerError,
)


async def test_as_many_transactions_as_producers_are_open_at_once(fake: FakeCluster) -> None:
    async with pool_of(fake, 3) as pool, blocks_of(pool) as blocks:
        entered = [await blocks.enter(name) for name in ("a", "b", "c", "d")]
        assert blocks.begun == ["a", "b", "c"]
        for block in entered:
            await block.end()
    assert visible(fake) == {b"a", b"b", b"c", b"d"}
    assert len({(end.transactional_id, end.producer_epoch) for end in ends(fake)}) == 4


async def test_opening_takes_over_every_id_at_once(fake: FakeCluster) -> None:
    async with pool_of(fake, 8) as pool:
        assert pool.transactional_ids == tuple(f"orders-{number}" for number in range(8))
        assert sorted(inits(fake)) == sorted(pool.transactional_ids)
        for value in (b"1", b"2", b"3"):
            await send(pool, value)
    assert len(inits(fake)) == 8
    assert visible(fake) == {b"1", b"2", b"3"}


async def test_an_instance_has_ids_of_its_own(fake: FakeCluster) -> None:
    async with (
        open_client(fake) as client,
        client.transactions("orders", size=2, instance="web-1") as first,
        client.transactions("orders", size=2, instance="web-2") as second,
    ):
        assert first.transactional_ids == ("orders-web-1-0", "orders-web-1-1")
        for pool in (first, second, first, second):
            await send(pool, b"v")


async def test_producers_are_used_in_turn(fake: FakeCluster) -> None:
    async with pool_of(fake, 3) as pool:
        for _ in range(6):
            await send(pool, b"v")
    used = [end.transactional_id for end in ends(fake)]
    assert sorted(used) == sorted(2 * pool.transactional_ids)


async def test_an_exception_in_a_block_aborts_and_frees_the_producer(fake: FakeCluster) -> None:
    async with pool_of(fake, 1) as pool:
        with pytest.raises(ZeroDivisionError):
            await send_and(pool, b"lost", divide)
        await send(pool, b"kept")
    assert visible(fake) == {b"kept"}


async def test_a_block_of_a_pool_cannot_prepare(fake: FakeCluster) -> None:
    async with pool_of(fake, 1) as pool:
        with pytest.raises(IllegalStateError, match=r"client\.transactional_producer"):
            async with pool.transaction() as txn:
                await txn.prepare()


# -- waiting ---------------------------------------------------------------------------------------


async def test_blocks_begin_in_the_order_in_which_they_came(fake: FakeCluster) -> None:
    async with pool_of(fake, 1, PATIENT) as pool, blocks_of(pool) as blocks:
        entered = [await blocks.enter(name) for name in ("a", "b", "c")]
        for block in entered:
            await block.end()
            await elapse(0.1)
    assert blocks.begun == ["a", "b", "c"]


async def test_waiting_for_a_producer_ends_with_an_error_that_names_the_pool(
    fake: FakeCluster,
) -> None:
    async with pool_of(fake, 2, PoolOptions(acquire_timeout_ms=500)) as pool:
        async with pool.transaction(), pool.transaction():
            with pytest.raises(NoFreeProducerError) as raised:
                await send(pool, b"v")
        assert str(raised.value) == (
            "no producer of the pool 'orders' was free for 500 ms: 2 of 2 are in blocks; end"
            " blocks sooner, or make the pool with a larger size"
        )
        await send(pool, b"w")
    assert visible(fake) == {b"w"}


async def test_a_block_that_is_cancelled_while_it_waits_takes_nothing(fake: FakeCluster) -> None:
    async with pool_of(fake, 1, PATIENT) as pool, blocks_of(pool) as blocks:
        first = await blocks.enter("first")
        cancelled = await blocks.enter("cancelled")
        await cancelled.cancel()
        await first.end()
        await send(pool, b"after")
    assert visible(fake) == {b"first", b"after"}


async def test_a_cancelled_block_aborts_and_its_producer_comes_back(fake: FakeCluster) -> None:
    async with pool_of(fake, 1, PATIENT) as pool:
        async with blocks_of(pool) as blocks:
            block = await blocks.enter("lost")
            await block.cancel()
        await send(pool, b"kept")
    assert visible(fake) == {b"kept"}


# -- one producer in two tasks ---------------------------------------------------------------------


async def test_one_producer_in_two_tasks_is_told_of_the_pool(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.transactional_producer("till")
        await producer.init_transactions()
        async with producer.transaction():
            with pytest.raises(
                IllegalStateError,
                match=r"'till' is in use.*one transaction at a time for each producer.*"
                r"client\.transactions\(prefix, size=8\)",
            ):
                await producer.begin_transaction()
