"""Fetch with a limit on records."""

import asyncio

from broker_service import Broker, plain, turns

from semel.broker.v1 import broker_pb2 as wire
from semel_common.wire.methods import FETCH


async def fetch_limited(
    broker: Broker, offset: int = 0, *, max_records: int, plain_records: bool = False
) -> wire.FetchPartitionResult:
    """Read partition 0, with a limit on records and more time and bytes than that needs."""
    request = wire.FetchRequest(
        min_bytes=1 << 20,
        max_wait_ms=60_000,
        plain_records=plain_records,
        max_records=max_records,
        partitions=[wire.FetchPartition(topic="orders", fetch_offset=offset)],
    )
    fetch = asyncio.create_task(broker.call(FETCH, request))
    await turns()
    assert fetch.done(), "an answer without room waits for no more"
    (result,) = (await fetch).partitions
    return result


async def test_plain_records_are_never_more_than_was_asked_for(broker: Broker) -> None:
    await broker.produce(plain(b"one", b"two", b"three"))
    await broker.produce(plain(b"four"))
    first = await fetch_limited(broker, max_records=2, plain_records=True)
    assert [record.value for record in first.records] == [b"one", b"two"]
    assert first.next_offset == 2
    second = await fetch_limited(broker, 2, max_records=2, plain_records=True)
    assert [record.value for record in second.records] == [b"three", b"four"]
    assert second.next_offset == 4


async def test_a_limit_on_records_is_for_all_partitions_together(broker: Broker) -> None:
    for partition in (0, 1):
        await broker.produce(plain(b"one", b"two"), partition=partition)
    request = wire.FetchRequest(
        plain_records=True,
        max_records=3,
        partitions=[wire.FetchPartition(topic="orders", partition=each) for each in (0, 1)],
    )
    found = (await broker.call(FETCH, request)).partitions
    assert [(len(each.records), each.next_offset) for each in found] == [(2, 2), (1, 1)]


async def test_a_limit_on_records_leaves_batches_whole(broker: Broker) -> None:
    for _ in range(3):
        await broker.produce(plain(b"one", b"two"))
    assert len((await fetch_limited(broker, max_records=1)).batches) == 1
    assert len((await fetch_limited(broker, max_records=3)).batches) == 2
    assert len((await fetch_limited(broker, max_records=4)).batches) == 2
