"""The service of prepared transactions: what is durable, what successors are told, and markers."""

import asyncio

import pytest
from structlog.testing import capture_logs
from transactions_harness import A0, after
from transactions_requests import ask, complete, init, prepare, prepare_with, topics
from transactions_service_harness import Cluster, Coordinator, until

from semel.common.v1 import participants_pb2
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import InvalidTxnStateError, RequestTimedOutError
from semel_coordinator.transactions.machine import TransactionKey
from semel_runtime.authentication.principal import Origin
from semel_runtime.server.calls import Call

ABORT = participants_pb2.TRANSACTION_RESULT_ABORT


async def prepared(coordinator: Coordinator) -> TransactionKey:
    """Prepare a transaction with A0."""
    key = await coordinator.init()
    request = prepare_with(topics=topics(0))
    request.producer_id = key.producer_id
    response = await ask(coordinator, request)
    assert response == wire.PrepareTxnResponse(producer_id=key.producer_id, producer_epoch=1)
    return key


async def test_what_was_answered_prepared_is_so_after_a_restart(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await prepared(coordinator)
    prepared_ms = cluster.clock.now_ms()
    cluster.clock.advance(10**9)
    async with cluster.coordinator() as coordinator:
        response = await ask(coordinator, init(instance_id="two", keep_prepared=True))
        assert response == wire.InitProducerIdResponse(
            producer_id=key.producer_id,
            producer_epoch=2,
            transactional_id_expiration_ms=604_800_000,
            prepared=[
                wire.PreparedTransaction(
                    producer_epoch=0, start_time_ms=prepared_ms, prepared_time_ms=prepared_ms
                )
            ],
        )
        assert cluster.broker_0.told == []
        request = complete(producer_id=key.producer_id, producer_epoch=2, wait=2)
        with capture_logs() as logs:
            await ask(coordinator, request)
        assert cluster.broker_0.told == ["0 commit topic-a/0"]
        assert {"by_producer": True, "outcome": "COMMITTED"}.items() <= logs[0].items()
        assert await ask(coordinator, request) == wire.CompletePreparedTxnResponse()


async def test_an_answer_waits_for_the_disk(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        cluster.volume.hold()
        asked = asyncio.create_task(ask(coordinator, prepare(producer_id=key.producer_id)))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not asked.done()
        cluster.volume.release()
        await asked
        cluster.volume.hold()
        asked = asyncio.create_task(ask(coordinator, complete(producer_id=key.producer_id)))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not asked.done()
        cluster.volume.release()
        await asked


async def test_a_successor_that_does_not_keep_it_aborts_it(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await prepared(coordinator)
        assert (await coordinator.init(instance="two")) == after(key, 2)
        await until(lambda: cluster.broker_0.told)
        assert cluster.broker_0.told == ["0 abort topic-a/0"]
        with pytest.raises(InvalidTxnStateError) as caught:
            await ask(coordinator, complete(producer_id=key.producer_id))
        assert caught.value.details == {"outcome": "ABORTED"}
        await ask(coordinator, complete(producer_id=key.producer_id, result=ABORT))


async def test_a_transaction_without_participants_is_complete_without_markers(
    cluster: Cluster,
) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await ask(coordinator, prepare(producer_id=key.producer_id))
        await ask(coordinator, complete(producer_id=key.producer_id, wait=2))
        assert coordinator.machine.markers.is_complete(key)
        assert cluster.broker_0.told == []


async def test_a_wait_that_is_too_long_says_that_it_is_decided(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        key = await prepared(coordinator)
        late = Call(origin=Origin(listener="default"), deadline=asyncio.get_running_loop().time())
        request = complete(producer_id=key.producer_id, wait=2)
        with pytest.raises(RequestTimedOutError) as caught:
            await coordinator.ask(request, late)
        assert caught.value.details == {"outcome": "COMMITTED"}


async def test_a_list_and_a_description_show_what_is_prepared(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await prepared(coordinator)
        await coordinator.end(after(key), A0)
        listed = await ask(
            coordinator, wire.ListTransactionsRequest(states=[wire.TRANSACTION_STATE_PREPARED])
        )
        assert isinstance(listed, wire.ListTransactionsResponse)
        assert [(each.producer_epoch, each.state) for each in listed.transactions] == [
            (0, wire.TRANSACTION_STATE_PREPARED)
        ]
        described = await ask(
            coordinator, wire.DescribeTransactionsRequest(transactional_ids=["app"])
        )
        assert isinstance(described, wire.DescribeTransactionsResponse)
        transaction = described.descriptions[0].transactions[0]
        assert transaction.state == wire.TRANSACTION_STATE_PREPARED
        assert transaction.prepared_time_ms == cluster.clock.now_ms()
        assert not transaction.HasField("missing_markers")
