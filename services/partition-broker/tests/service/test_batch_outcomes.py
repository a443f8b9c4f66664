"""Fetch with the outcome of each batch."""

import asyncio

import pytest
from broker_harness import OTHER, PRODUCER
from broker_service import (
    ABORT,
    COMMIT,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Broker,
    batch,
    plain,
    serving,
    turns,
)
from compacted_topic import coordinators, keyed

from semel.broker.v1 import broker_pb2 as wire
from semel_broker.machine.values import BatchOutcome
from semel_common.errors import InvalidRequestError
from semel_common.wire.methods import FETCH
from semel_runtime.testing.volume import MemoryVolume

PLAIN, OPEN = BatchOutcome.NOT_TRANSACTIONAL, BatchOutcome.OPEN
COMMITTED, ABORTED = BatchOutcome.COMMITTED, BatchOutcome.ABORTED


async def fetch(
    broker: Broker,
    isolation: wire.IsolationLevel.ValueType = READ_UNCOMMITTED,
    *,
    min_bytes: int = 0,
    max_wait_ms: int = 0,
) -> wire.FetchPartitionResult:
    """Read partition 0, with outcomes."""
    request = wire.FetchRequest(
        isolation_level=isolation,
        min_bytes=min_bytes,
        max_wait_ms=max_wait_ms,
        batch_outcomes=True,
        partitions=[wire.FetchPartition(topic="orders")],
    )
    (result,) = (await broker.call(FETCH, request)).partitions
    return result


async def outcomes(
    broker: Broker, isolation: wire.IsolationLevel.ValueType = READ_UNCOMMITTED
) -> list[tuple[int, BatchOutcome]]:
    """Return the first offset and the outcome of each batch."""
    result = await fetch(broker, isolation)
    told = map(BatchOutcome, result.batch_outcomes)
    return [(each.base_offset, outcome) for each, outcome in zip(result.batches, told, strict=True)]


def test_machine_and_protocol_have_the_same_numbers() -> None:
    names = {f"BATCH_OUTCOME_{each.name}": each.value for each in BatchOutcome}
    assert names | {"BATCH_OUTCOME_UNSPECIFIED": 0} == dict(wire.BatchOutcome.items())


async def test_each_batch_has_its_outcome_also_above_the_last_stable_offset(
    broker: Broker,
) -> None:
    await broker.produce(plain(b"plain"))
    await broker.produce(batch(b"open"))
    await broker.produce(batch(b"kept", producer_id=OTHER))
    await broker.end(COMMIT, producer_id=OTHER)
    await broker.produce(batch(b"dropped", producer_id=OTHER, epoch=1))
    await broker.end(ABORT, producer_id=OTHER, epoch=1)
    first = [(0, PLAIN), (1, OPEN), (2, COMMITTED), (3, COMMITTED), (4, ABORTED), (5, ABORTED)]
    assert await outcomes(broker) == first
    assert await outcomes(broker, READ_COMMITTED) == [(0, PLAIN)]

    await broker.end(COMMIT)
    first[1] = (1, COMMITTED)
    assert await outcomes(broker) == [*first, (6, COMMITTED)]
    assert await outcomes(broker, READ_COMMITTED) == first[:3]


async def test_a_reader_that_does_not_ask_is_told_none(broker: Broker) -> None:
    await broker.produce(batch(b"open"))
    result = await broker.fetch(isolation=READ_UNCOMMITTED)
    assert (len(result.batches), len(result.batch_outcomes)) == (1, 0)


async def test_a_marker_that_compaction_has_left_alone_keeps_its_outcome(
    volume: MemoryVolume,
) -> None:
    async with serving(volume, coordinators=coordinators()) as broker:
        await broker.produce(keyed((b"a", b"dropped"), producer_id=PRODUCER))
        await broker.end(ABORT)
        await broker.produce(keyed((b"b", b"1")))
        await broker.compact()
        assert await outcomes(broker) == [(1, ABORTED), (2, PLAIN)]


async def test_outcomes_outlive_a_restart(volume: MemoryVolume) -> None:
    async with serving(volume) as broker:
        await broker.produce(batch(b"dropped"))
        await broker.end(ABORT)
        await broker.produce(batch(b"open", epoch=1))
        before = await outcomes(broker)
    async with serving(volume) as broker:
        assert await outcomes(broker) == before == [(0, ABORTED), (1, ABORTED), (2, OPEN)]


async def test_a_call_that_waits_for_more_tells_each_outcome_as_it_was_read(
    broker: Broker,
) -> None:
    await broker.produce(batch(b"first"))
    waiting = asyncio.create_task(fetch(broker, min_bytes=1 << 20, max_wait_ms=1_000))
    await turns()
    await broker.end(ABORT)
    result = await waiting
    assert list(map(BatchOutcome, result.batch_outcomes)) == [OPEN, ABORTED]


async def test_plain_records_have_no_outcomes_of_batches(broker: Broker) -> None:
    request = wire.FetchRequest(
        plain_records=True,
        batch_outcomes=True,
        partitions=[wire.FetchPartition(topic="orders")],
    )
    with pytest.raises(InvalidRequestError, match="batch_outcomes is set") as refused:
        await broker.call(FETCH, request)
    assert refused.value.details["field"] == "batch_outcomes"
