"""What a pool does with producers that are not ready after a block, or never again."""

import asyncio
from random import Random

import pytest
from network_faults import Hold, LoseReply, LoseRequest, Refuse
from pool_harness import (
    PATIENT,
    blocks_of,
    divide,
    inits,
    pool_of,
    send,
    send_and,
    visible,
)
from producer_harness import FakeCluster, elapse, ends

from aiosemel import (
    PoolOptions,
    SemelClient,
    TransactionPool,
)
from aiosemel.errors import (
    AuthorizationError,
    InvalidProducerIdMappingError,
    NoFreeProducerError,
    SemelError,
    TransactionAbortedError,
    TransactionalIdAuthorizationFailedError,
    TransactionOutcomeUnknownError,
)


async def test_an_abort_without_an_answer_keeps_only_its_own_producer(fake: FakeCluster) -> None:
    released = asyncio.Event()
    async with pool_of(fake, 2, PATIENT) as pool, blocks_of(pool) as blocks:
        block = await blocks.enter("lost")
        fake.then("EndTxn", *(Hold(released) for _ in range(1)))
        await block.cancel()
        for value in (b"1", b"2"):
            await send(pool, value)
        released.set()
        await elapse(1)
        for value in (b"3", b"4"):
            await send(pool, value)
    assert visible(fake) == {b"1", b"2", b"3", b"4"}
    assert len({end.transactional_id for end in ends(fake)[-2:]}) == 2


async def test_an_abort_that_is_never_answered_in_time_is_repeated(fake: FakeCluster) -> None:
    async with pool_of(fake, 1, PATIENT) as pool:
        fake.then("EndTxn", *(LoseRequest(),) * 12)  # Longer than max_block_ms.
        with pytest.raises(ZeroDivisionError):
            await send_and(pool, b"lost", divide)
        await send(pool, b"kept")
    assert visible(fake) == {b"kept"}


async def test_a_wait_for_the_cluster_is_named_in_the_error(fake: FakeCluster) -> None:
    options = PoolOptions(acquire_timeout_ms=3_000, close_timeout_ms=1)
    async with pool_of(fake, 1, options) as pool:
        fake.then("EndTxn", *(LoseRequest(),) * 100)
        with pytest.raises(TransactionOutcomeUnknownError):
            await send(pool, b"v")
        with pytest.raises(NoFreeProducerError, match="0 of 1 are in blocks, 1 wait for the clu"):
            await send(pool, b"w")


async def test_a_commit_whose_answer_was_lost_is_found_out_before_the_next_block(
    fake: FakeCluster,
) -> None:
    async with pool_of(fake, 1, PATIENT) as pool:
        fake.then("EndTxn", LoseReply(), *(LoseRequest(),) * 11)
        with pytest.raises(TransactionOutcomeUnknownError) as unknown:
            await send(pool, b"1")
        assert (await unknown.value.resolve()).outcome == "COMMITTED"
        await send(pool, b"2")
    assert visible(fake) == {b"1", b"2"}
    assert inits(fake) == ["orders-0"]


async def test_a_commit_that_was_lost_is_sent_again_if_its_user_does_not_ask(
    fake: FakeCluster,
) -> None:
    async with pool_of(fake, 1, PATIENT) as pool:
        fake.then("EndTxn", *(LoseRequest(),) * 12)
        with pytest.raises(TransactionOutcomeUnknownError):
            await send(pool, b"1")
        await send(pool, b"2")
    assert visible(fake) == {b"1", b"2"}


async def test_a_producer_that_is_done_is_replaced(fake: FakeCluster) -> None:
    async with pool_of(fake, 1, PATIENT) as pool:
        fake.then("EndTxn", Refuse(InvalidProducerIdMappingError("expired", outcome="ABORTED")))
        with pytest.raises(TransactionAbortedError):
            await send(pool, b"lost")
        await send(pool, b"kept")
        assert pool.error is None
    assert visible(fake) == {b"kept"}
    assert inits(fake) == ["orders-0", "orders-0"]


async def test_a_producer_that_cannot_be_replaced_at_once_is_replaced_later(
    fake: FakeCluster,
) -> None:
    async with pool_of(fake, 2, PATIENT) as pool:
        fake.then("EndTxn", Refuse(InvalidProducerIdMappingError("expired", outcome="ABORTED")))
        fake.then("InitProducerId", *(LoseRequest(),) * 12)
        with pytest.raises(TransactionAbortedError):
            await send(pool, b"lost")
        await asyncio.gather(*(send(pool, value) for value in (b"1", b"2", b"3")))
    assert visible(fake) == {b"1", b"2", b"3"}


async def test_a_pool_that_may_not_go_on_ends_with_the_reason(fake: FakeCluster) -> None:
    async with pool_of(fake, 1, PATIENT) as pool:
        fake.then("EndTxn", Refuse(InvalidProducerIdMappingError("expired", outcome="ABORTED")))
        refusal = TransactionalIdAuthorizationFailedError("may not write orders-0")
        fake.then("InitProducerId", Refuse(refusal))
        with pytest.raises(TransactionAbortedError):
            await send(pool, b"lost")
        with pytest.raises(AuthorizationError, match="may not write"):
            await send(pool, b"lost, too")


# -- two processes with one name -------------------------------------------------------------------


async def used_up(pool: TransactionPool) -> SemelError:
    """Send until the pool has an error of its own; returns the first that a block raised."""
    raised: list[SemelError] = []
    while pool.error is None:
        try:
            await send(pool, b"zombie")
        except SemelError as error:
            raised.append(error)
    return raised[0]


async def test_a_second_pool_of_the_same_name_ends_the_first_one_with_what_to_do(
    fake: FakeCluster,
) -> None:
    async with (
        pool_of(fake, 2) as older,
        SemelClient("coordinator:1", connector=fake, random=Random(8)) as another_process,
        another_process.transactions("orders", size=2) as newer,
    ):
        first = await used_up(older)
        assert isinstance(first, TransactionAbortedError)
        for text in ("the pool 'orders' has ended", "another process", "instance='web-1'"):
            assert text in first.message
            assert text in str(older.error)
        with pytest.raises(SemelError, match="the pool 'orders' has ended"):
            await send(older, b"zombie")
        for value in (b"1", b"2", b"3", b"4"):
            await send(newer, value)
        assert newer.error is None
    assert visible(fake) == {b"1", b"2", b"3", b"4"}
    # Nothing takes an id back: two pools never fence one another in turn.
    assert len(inits(fake)) == 4


async def test_a_fence_wakes_the_blocks_that_wait(fake: FakeCluster) -> None:
    held = asyncio.Event()
    async with pool_of(fake, 1, PATIENT) as pool:
        holding = asyncio.create_task(send_and(pool, b"zombie", held.wait))
        await elapse(0.1)
        waiting = asyncio.create_task(send(pool, b"zombie"))
        await elapse(0.1)
        fake.supersede("orders-0")
        held.set()
        with pytest.raises(TransactionAbortedError, match="has ended"):
            await holding
        with pytest.raises(SemelError, match="has ended"):
            await waiting
    assert visible(fake) == set()


async def test_a_fence_ends_the_pool_also_if_the_block_was_left_by_another_error(
    fake: FakeCluster,
) -> None:
    def fenced_and_divide() -> int:
        fake.supersede("orders-0")
        return divide()

    async with pool_of(fake, 1) as pool:
        with pytest.raises(ZeroDivisionError):
            await send_and(pool, b"zombie", fenced_and_divide)
        with pytest.raises(SemelError, match="has ended"):
            await send(pool, b"zombie")


async def test_a_fence_that_only_the_abort_of_a_cancelled_block_finds_ends_the_pool(
    fake: FakeCluster,
) -> None:
    async with pool_of(fake, 1) as pool, blocks_of(pool) as blocks:
        block = await blocks.enter("zombie")
        fake.supersede("orders-0")
        await block.cancel()
        await elapse(1)
        assert "the pool 'orders' has ended" in str(pool.error)
    assert inits(fake) == ["orders-0"]
