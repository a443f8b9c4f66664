"""The service: the instance in charge, durable answers, transactions, and waits for markers."""

import asyncio

import pytest
from structlog.testing import capture_logs
from transactions_harness import A0, A1, GROUP, after
from transactions_requests import (
    add,
    ask,
    complete,
    end,
    init,
    inquire,
    offsets,
    prepare,
    topics,
)
from transactions_service_harness import TRACEPARENT, Cluster, until

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import (
    CoordinatorLoadInProgressError,
    ProducerFencedError,
    RequestTimedOutError,
)
from semel_common.wire.methods import (
    ABORT_TRANSACTION,
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    COMPLETE_PREPARED_TXN,
    DESCRIBE_TRANSACTIONS,
    END_JOINT_TXN,
    END_TXN,
    FENCE_PRODUCER,
    GET_TRANSACTION_OUTCOME,
    HAND_OVER_TRANSACTIONS,
    INIT_PRODUCER_ID,
    INQUIRE_TRANSACTIONS,
    JOIN_TXN,
    KEEP_ALIVE_TXN,
    LIST_AUDIT,
    LIST_TRANSACTION_HISTORY,
    LIST_TRANSACTIONS,
    PREPARE_TXN,
)
from semel_runtime.authentication.principal import Origin
from semel_runtime.server.calls import Call

METHODS = (
    INIT_PRODUCER_ID,
    ADD_PARTITIONS_TO_TXN,
    ADD_OFFSETS_TO_TXN,
    END_TXN,
    PREPARE_TXN,
    COMPLETE_PREPARED_TXN,
    INQUIRE_TRANSACTIONS,
    DESCRIBE_TRANSACTIONS,
    LIST_TRANSACTIONS,
    LIST_TRANSACTION_HISTORY,
    LIST_AUDIT,
    GET_TRANSACTION_OUTCOME,
    ABORT_TRANSACTION,
    FENCE_PRODUCER,
    JOIN_TXN,
    KEEP_ALIVE_TXN,
    END_JOINT_TXN,
    HAND_OVER_TRANSACTIONS,
)


# -- being in charge ----------------------------------------------------------------------------


async def test_nothing_is_answered_before_partitions_are_claimed(cluster: Cluster) -> None:
    """C-035, C-081."""
    async with cluster.coordinator(claim=False, send=False) as coordinator:
        requests = (
            *(init(), add(), offsets(), end(), prepare(), complete(), inquire()),
            *(wire.DescribeTransactionsRequest(), wire.ListTransactionsRequest()),
        )
        for request in requests:
            with pytest.raises(CoordinatorLoadInProgressError):
                await ask(coordinator, request)
        await coordinator.parts.claim.take()
        await ask(coordinator, init())


async def test_every_rpc_has_a_handler(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        methods = {endpoint.method for endpoint in coordinator.handlers()}
        assert methods == set(METHODS)


async def test_answers_wait_for_the_disk_and_so_do_errors(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        cluster.volume.hold()
        asked = [
            asyncio.create_task(coordinator.end(key, A0)),
            asyncio.create_task(ask(coordinator, wire.ListTransactionsRequest())),
            asyncio.create_task(coordinator.end(after(key, 9))),
        ]
        for _ in range(20):
            await asyncio.sleep(0)
        assert not any(question.done() for question in asked)
        cluster.volume.release()
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(results[2], ProducerFencedError)


# -- the way of a transaction -------------------------------------------------------------------


async def test_a_transaction_from_begin_to_end(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        await ask(coordinator, add(producer_id=key.producer_id, topics=topics(0, 1)))
        await ask(coordinator, offsets(producer_id=key.producer_id))
        response = await ask(coordinator, end(producer_id=key.producer_id))
        assert response == wire.EndTxnResponse(producer_id=key.producer_id, producer_epoch=1)
        (decided,) = coordinator.machine.markers.pending()
        assert set(decided.committing) == {A0, A1, GROUP}
        assert decided.traceparent == TRACEPARENT


async def test_idempotent_producers_get_fresh_ids(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        first = await ask(coordinator, wire.InitProducerIdRequest())
        second = await ask(coordinator, wire.InitProducerIdRequest())
        assert isinstance(first, wire.InitProducerIdResponse)
        assert isinstance(second, wire.InitProducerIdResponse)
        assert 0 < first.producer_id < second.producer_id


@pytest.mark.parametrize(
    "given",
    [
        "x" * 100,
        "00-../../search?lookback=1-0000000000000001-01",
        f"{TRACEPARENT}-more",
        TRACEPARENT.upper().replace("7", "A"),
        f"00-{0:032x}-{1:016x}-01",
        f"00-{7:032x}-{1:016x}-00",
        f"00-{7:032x}-{1:016x}-02",
    ],
)
async def test_a_trace_context_of_no_recorded_trace_is_not_stored(
    cluster: Cluster, given: str
) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        await coordinator.end(
            key, A0, call=Call(origin=Origin(listener="default"), traceparent=given)
        )
        assert coordinator.machine.markers.pending()[0].traceparent == ""


async def test_an_epoch_that_was_never_given_is_logged_as_a_defect(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        with capture_logs() as logs:
            with pytest.raises(ProducerFencedError):
                await coordinator.end(after(key, 3))
            answer = await ask(coordinator, inquire(producer_id=key.producer_id, producer_epoch=3))
        assert isinstance(answer, wire.InquireTransactionsResponse)
        assert answer.answers[0].outcome == wire.INQUIRY_OUTCOME_NEVER_GIVEN
        assert [log["request"] for log in logs] == ["EndTxn", "InquireTransactions"]
        assert {log["log_level"] for log in logs} == {"error"}


# -- waiting for markers ------------------------------------------------------------------------


@pytest.mark.parametrize("wait", [wire.WAIT_FOR_UNSPECIFIED, wire.WAIT_FOR_COMPLETE])
async def test_a_successor_waits_for_the_markers_of_its_predecessor(
    cluster: Cluster, wait: wire.WaitFor.ValueType
) -> None:
    """A repeat while the first one waits gets the same answer."""
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init(instance="one")
        cluster.broker_0.open.clear()
        await coordinator.end(key, A0)
        await coordinator.end(after(key), A1)
        waiting = [asyncio.create_task(coordinator.init(instance="two", wait=wait))]
        await until(lambda: cluster.broker_1.requests)
        waiting.append(asyncio.create_task(coordinator.init(instance="two", wait=wait)))
        await until(lambda: coordinator.machine.markers.is_complete(after(key)))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not any(each.done() for each in waiting)
        assert await coordinator.init(instance="two") == after(key, 3)
        cluster.broker_0.open.set()
        assert await asyncio.gather(*waiting) == [after(key, 3)] * 2


async def test_a_caller_may_wait_until_it_can_read_what_it_wrote(cluster: Cluster) -> None:
    """Its own transaction, not those before it."""
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        cluster.broker_0.open.clear()
        await coordinator.end(key, A0)
        wait = wire.WAIT_FOR_COMPLETE
        assert await coordinator.end(after(key), A1, wait=wait) == after(key, 2)
        assert not coordinator.machine.markers.is_complete(key)
        cluster.broker_0.open.set()
        assert await coordinator.end(after(key, 2), A0, wait=wait) == after(key, 3)
        assert await coordinator.end(after(key, 3), wait=wait) == after(key, 4)


async def test_waiting_ends_with_the_deadline_and_a_repeat_waits_on(cluster: Cluster) -> None:
    """C-017."""
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        cluster.broker_0.open.clear()
        now = asyncio.get_running_loop().time()
        call = Call(origin=Origin(listener="default"), deadline=now - 1)
        with pytest.raises(RequestTimedOutError, match="not all markers") as caught:
            await coordinator.end(key, A0, wait=wire.WAIT_FOR_COMPLETE, call=call)
        assert caught.value.details == {"outcome": "COMMITTED", "next_epoch": "1"}
        with pytest.raises(RequestTimedOutError):
            await coordinator.init(instance="two", wait=wire.WAIT_FOR_COMPLETE, call=call)
        cluster.broker_0.open.set()
        wait = wire.WAIT_FOR_COMPLETE
        assert await coordinator.init(instance="two", wait=wait) == after(key, 2)


async def test_a_caller_that_goes_away_leaves_nothing_behind(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        cluster.broker_0.open.clear()
        waiting = asyncio.create_task(coordinator.end(key, A0, wait=wire.WAIT_FOR_COMPLETE))
        await until(lambda: cluster.broker_0.requests)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        cluster.broker_0.open.set()
        await until(lambda: coordinator.machine.markers.is_complete(key))
        await until(lambda: coordinator.markers._completions == {})
