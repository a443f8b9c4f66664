"""WriteTxnMarkers: errors are values, any number of markers is taken, and some have time."""

import asyncio

import pytest
from broker_harness import CLUSTER_ID, OTHER, PRODUCER
from broker_service import (
    ABORT,
    COMMIT,
    READ_UNCOMMITTED,
    Broker,
    batch,
    code,
    marker,
    serving,
    turns,
)

from semel.common.v1.participants_pb2 import Participants, TxnMarker, WriteTxnMarkersRequest
from semel.common.v1.records_pb2 import ControlRecord
from semel_common.error_codes import ErrorCode
from semel_common.errors import (
    BrokerNotAvailableError,
    InconsistentClusterIdError,
    InvalidRequestError,
)
from semel_common.ids import producer_id_of
from semel_common.wire.methods import BROKER_WRITE_TXN_MARKERS
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.testing.virtual_time import after, in_virtual_time
from semel_runtime.testing.volume import MemoryVolume


async def test_refused_participants_are_named_and_all_others_have_it(broker: Broker) -> None:
    await broker.produce(batch(b"one"))
    taken = marker(COMMIT, partitions=[0, 1, 2, 7])
    taken.participants.group_ids.append("billing")
    response = await broker.mark(taken, marker(ABORT, topic_id="id-gone", producer_id=OTHER))
    first, second = response.results
    assert [
        (error.participant.topic_partition.partition, code(error)) for error in first.errors
    ] == [
        (2, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (0, ErrorCode.INVALID_REQUEST),
    ]
    assert first.errors[2].participant.group_id == "billing"
    (unknown,) = second.errors
    assert unknown.participant.topic_partition.topic_id == "id-gone"
    assert code(unknown) == ErrorCode.UNKNOWN_TOPIC_ID
    assert (await broker.fetch()).last_stable_offset == 2


async def test_more_markers_than_one_append_holds_are_all_written(broker: Broker) -> None:
    producers = [producer_id_of(3, number) for number in range(1, 1_201)]
    for producer_id in producers:
        await broker.produce(batch(b"one", producer_id=producer_id))
    response = await broker.mark(*(marker(COMMIT, producer_id=producer) for producer in producers))
    assert not any(each.errors for each in response.results)
    result = await broker.fetch(isolation=READ_UNCOMMITTED)
    assert result.last_stable_offset == result.high_watermark == 2_400


async def test_a_transaction_may_commit_in_one_partition_and_abort_in_another(
    broker: Broker,
) -> None:
    """What was registered and never acknowledged aborts, while the rest commits."""
    for partition in (0, 1):
        await broker.produce(batch(b"one"), partition=partition)
    await broker.mark(marker(COMMIT, partitions=[0]), marker(ABORT, partitions=[1]))
    stored = [
        (await broker.fetch(isolation=READ_UNCOMMITTED, partition=each)).batches[1]
        for each in (0, 1)
    ]
    assert [ControlRecord.FromString(each.payload).committed for each in stored] == [True, False]


async def test_a_repeat_is_answered_as_written(broker: Broker) -> None:
    await broker.produce(batch(b"one"))
    for _ in range(2):
        await broker.end(COMMIT, partitions=[0, 1])
    assert (await broker.fetch()).high_watermark == 2


async def test_a_marker_of_another_cluster_is_refused(broker: Broker) -> None:
    request = WriteTxnMarkersRequest(cluster_id="cluster-b", markers=[marker(COMMIT)])
    with pytest.raises(InconsistentClusterIdError):
        await broker.call(BROKER_WRITE_TXN_MARKERS, request)


async def test_a_broker_that_knows_no_cluster_yet_asks_for_a_retry(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker.app._machine, "cluster", ClusterCopy())
    with pytest.raises(BrokerNotAvailableError):
        await broker.mark(marker(COMMIT))


@pytest.mark.parametrize(
    "bad",
    [
        marker(COMMIT, producer_id=0),
        marker(COMMIT, epoch=-1),
        marker(COMMIT, epoch=2**63 - 1),
        marker(COMMIT, coordinator_epoch=-1),
        TxnMarker(producer_id=PRODUCER, participants=Participants()),
    ],
    ids=str,
)
async def test_a_malformed_marker_is_refused(broker: Broker, bad: TxnMarker) -> None:
    request = WriteTxnMarkersRequest(cluster_id=CLUSTER_ID, markers=[marker(COMMIT), bad])
    with pytest.raises(InvalidRequestError):
        await broker.call(BROKER_WRITE_TXN_MARKERS, request)


@in_virtual_time
async def test_a_marker_without_a_waiter_rides_in_the_next_append() -> None:
    async with serving(MemoryVolume()) as broker:
        await broker.produce(batch(b"one"))
        marking = asyncio.create_task(broker.end(COMMIT))
        await turns()
        assert not marking.done()
        await broker.produce(batch(b"two", epoch=1))
        await turns()
        assert marking.done()


@in_virtual_time
async def test_a_marker_without_a_waiter_is_written_soon() -> None:
    async with serving(MemoryVolume()) as broker:
        await broker.produce(batch(b"one"))
        marking = asyncio.create_task(broker.end(COMMIT))
        await after(3)
        assert marking.done()


@in_virtual_time
async def test_a_marker_is_written_at_once_for_a_reader_that_waits_or_comes() -> None:
    async with serving(MemoryVolume()) as broker:
        await broker.produce(batch(b"one"))
        waiting = asyncio.create_task(broker.fetch(max_wait_ms=60_000))
        await turns()
        begun = asyncio.get_running_loop().time()
        await broker.end(COMMIT)
        assert len((await waiting).batches) == 1

        await broker.produce(batch(b"two", epoch=1))
        marking = asyncio.create_task(broker.end(COMMIT, epoch=1))
        await turns()
        assert len((await broker.fetch(offset=2)).batches) == 1
        await marking
        assert asyncio.get_running_loop().time() == begun


@in_virtual_time
async def test_a_marker_is_written_at_once_for_a_caller_waiting_at_the_coordinator() -> None:
    async with serving(MemoryVolume()) as broker:
        await broker.produce(batch(b"one"))
        begun = asyncio.get_running_loop().time()
        await broker.mark(marker(COMMIT), awaited=True)
        assert asyncio.get_running_loop().time() == begun
