"""Fetches that wait: who wakes them, and what ends the waiting."""

import asyncio

import pytest
from broker_harness import OTHER, image, topic
from broker_service import (
    ABORT,
    COMMIT,
    READ_UNCOMMITTED,
    Broker,
    batch,
    code,
    plain,
    serving,
    turns,
    two_partitions,
)

from semel.broker.v1 import broker_pb2 as wire
from semel_common.error_codes import ErrorCode
from semel_common.wire.methods import FETCH
from semel_runtime.testing.volume import MemoryVolume

LONG_MS = 2_000_000_000


async def test_an_append_wakes_a_fetch_at_the_end(broker: Broker) -> None:
    fetch = asyncio.create_task(broker.fetch(max_wait_ms=LONG_MS))
    await turns()
    assert (fetch.done(), broker.waiting) == (False, 1)
    await broker.produce(plain(b"one"))
    assert len((await fetch).batches) == 1
    assert broker.waiting == 0


async def test_a_commit_wakes_a_committed_fetch_and_its_data_does_not(broker: Broker) -> None:
    fetch = asyncio.create_task(broker.fetch(max_wait_ms=LONG_MS))
    await turns()
    await broker.produce(batch(b"one"))
    await turns()
    assert not fetch.done()
    await broker.end(COMMIT)
    assert len((await fetch).batches) == 1


async def test_data_wakes_an_uncommitted_fetch(broker: Broker) -> None:
    fetch = asyncio.create_task(broker.fetch(max_wait_ms=LONG_MS, isolation=READ_UNCOMMITTED))
    await turns()
    await broker.produce(batch(b"one"))
    assert len((await fetch).batches) == 1


async def test_an_abort_moves_a_waiting_fetch_on_without_an_answer(broker: Broker) -> None:
    fetch = asyncio.create_task(broker.fetch(max_wait_ms=LONG_MS))
    await turns()
    await broker.produce(batch(b"dropped"))
    await broker.end(ABORT)
    await turns()
    assert not fetch.done()
    await broker.produce(plain(b"behind"))
    result = await fetch
    assert [each.base_offset for each in result.batches] == [2]
    assert result.next_offset == 3


async def test_the_end_of_another_transaction_wakes_the_reader_behind_it(broker: Broker) -> None:
    await broker.produce(batch(b"first", producer_id=OTHER))
    await broker.produce(batch(b"second"))
    await broker.end(COMMIT)
    fetch = asyncio.create_task(broker.fetch(max_wait_ms=LONG_MS))
    await turns()
    assert not fetch.done()
    await broker.end(COMMIT, producer_id=OTHER)
    assert len((await fetch).batches) == 2


async def test_one_append_wakes_all_who_wait_for_it(broker: Broker) -> None:
    fetches = [asyncio.create_task(broker.fetch(max_wait_ms=LONG_MS)) for _ in range(3)]
    await turns()
    fetches.pop().cancel()
    await turns()
    assert broker.waiting == 2
    await broker.produce(plain(b"one"))
    assert [len((await fetch).batches) for fetch in fetches] == [1, 1]


async def test_appends_to_other_partitions_wake_no_reader(broker: Broker) -> None:
    fetch = asyncio.create_task(broker.fetch(max_wait_ms=LONG_MS))
    await turns()
    await broker.produce(plain(b"one"), partition=1)
    await turns()
    assert (fetch.done(), broker.waiting) == (False, 1)
    fetch.cancel()
    await asyncio.wait([fetch])
    assert broker.waiting == 0


async def test_a_fetch_waits_for_as_many_bytes_as_it_wants(broker: Broker) -> None:
    await broker.produce(plain(bytes(1_000)))
    fetch = asyncio.create_task(broker.fetch(max_wait_ms=LONG_MS, min_bytes=2_500))
    await turns()
    await broker.produce(plain(bytes(1_000)))
    await turns()
    assert not fetch.done()
    await broker.produce(plain(bytes(1_000)))
    assert [each.base_offset for each in (await fetch).batches] == [0, 1, 2]


async def test_a_fetch_that_has_all_it_has_room_for_does_not_wait(broker: Broker) -> None:
    for _ in range(3):
        await broker.produce(plain(bytes(1_000)))
    result = await broker.fetch(max_wait_ms=LONG_MS, min_bytes=1 << 20, max_bytes=2_000)
    assert len(result.batches) == 1


@pytest.mark.timeout(20)
async def test_a_fetch_that_is_exactly_full_is_answered_as_soon_as_there_is_more(
    broker: Broker,
) -> None:
    """It has no room for the batch that wakes it: waiting on would be a busy loop."""
    await broker.produce(plain(bytes(1_000)))
    size = (await broker.fetch()).batches[0].ByteSize()
    for room in range(size - 40, size + 40):
        fetch = asyncio.create_task(
            broker.fetch(max_wait_ms=LONG_MS, min_bytes=1 << 20, max_bytes=room)
        )
        await turns()
        await broker.produce(plain(bytes(1_000)))
        assert [each.base_offset for each in (await fetch).batches] == [0]


async def test_a_fetch_answers_what_there_is_when_its_time_is_over(broker: Broker) -> None:
    await broker.produce(plain(bytes(1_000)))
    result = await broker.fetch(max_wait_ms=1, min_bytes=1 << 20)
    assert len(result.batches) == 1
    assert (await broker.fetch(1, max_wait_ms=1)).next_offset == 1


async def test_a_fetch_stops_waiting_before_its_caller_does(broker: Broker) -> None:
    deadline = asyncio.get_running_loop().time() + 0.001
    assert (await broker.fetch(max_wait_ms=LONG_MS, deadline=deadline)).next_offset == 0


async def test_any_of_several_partitions_wakes_a_fetch(broker: Broker) -> None:
    request = wire.FetchRequest(
        max_wait_ms=LONG_MS,
        partitions=[
            wire.FetchPartition(topic="orders", partition=0),
            wire.FetchPartition(topic="orders", partition=1),
            wire.FetchPartition(topic_id="id-orders", partition=1),
        ],
    )
    fetch = asyncio.create_task(broker.call(FETCH, request))
    await turns()
    assert broker.waiting == 2
    await broker.produce(plain(b"one"), partition=1)
    results = (await fetch).partitions
    assert [len(result.batches) for result in results] == [0, 1, 1]
    assert broker.waiting == 0


async def test_a_deleted_topic_ends_the_waiting_with_an_error(broker: Broker) -> None:
    fetch = asyncio.create_task(broker.fetch(max_wait_ms=LONG_MS))
    await turns()
    broker.coordinators.controller.publish(image(2))
    assert code(await fetch) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_what_was_found_is_answered_even_if_the_topic_goes(broker: Broker) -> None:
    await broker.produce(plain(b"one"))
    fetch = asyncio.create_task(broker.fetch(max_wait_ms=LONG_MS, min_bytes=1 << 20))
    await turns()
    broker.coordinators.controller.publish(image(2))
    assert len((await fetch).batches) == 1


async def test_a_partition_that_moves_away_ends_the_waiting(broker: Broker) -> None:
    fetch = asyncio.create_task(broker.fetch(max_wait_ms=LONG_MS))
    await turns()
    broker.coordinators.controller.publish(image(2, topic("orders", 2, 2, 2, epoch=1)))
    assert code(await fetch) == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_new_metadata_that_changes_nothing_here_wakes_no_reader(broker: Broker) -> None:
    fetch = asyncio.create_task(broker.fetch(max_wait_ms=LONG_MS))
    await turns()
    broker.coordinators.controller.publish(two_partitions(2))
    await turns()
    assert not fetch.done()
    broker.app.drain()
    await fetch


async def test_a_broker_that_stops_answers_waiting_readers(volume: MemoryVolume) -> None:
    async with serving(volume) as broker:
        fetch = asyncio.create_task(broker.fetch(max_wait_ms=LONG_MS))
        await turns()
        broker.app.drain()
        assert (await fetch).next_offset == 0
        assert (await broker.fetch(max_wait_ms=LONG_MS)).next_offset == 0


async def test_reads_wait_for_what_they_show_to_be_durable(
    broker: Broker, volume: MemoryVolume
) -> None:
    volume.hold()
    produce = asyncio.create_task(broker.produce(plain(b"one")))
    await turns()
    fetch = asyncio.create_task(broker.fetch())
    await turns()
    assert not fetch.done()
    volume.release()
    assert len((await fetch).batches) == 1
    await produce


async def test_a_commit_between_the_reading_and_the_waiting_is_not_missed(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiters = broker.app._waiters
    wait = waiters.wait

    async def append_first(*args: object, **options: object) -> bool:
        monkeypatch.setattr(waiters, "wait", wait)
        await broker.produce(plain(b"one"))
        return await wait(*args, **options)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(waiters, "wait", append_first)
    assert len((await broker.fetch(max_wait_ms=LONG_MS)).batches) == 1
