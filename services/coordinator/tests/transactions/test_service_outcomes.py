"""The service: GetTransactionOutcome."""

import pytest
from transactions_harness import A0, TIMEOUT_MS
from transactions_requests import ask
from transactions_service_harness import Cluster, Coordinator

from semel.coordinator.v1 import outcomes_pb2 as wire
from semel_common.errors import CoordinatorLoadInProgressError, InvalidRequestError


async def outcome(
    coordinator: Coordinator, *, transactional_id: str = "", producer_id: int = 0, epoch: int = 0
) -> wire.GetTransactionOutcomeResponse:
    request = wire.GetTransactionOutcomeRequest(
        transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch
    )
    response = await ask(coordinator, request)
    assert isinstance(response, wire.GetTransactionOutcomeResponse)
    return response


async def test_an_outcome_is_answered_by_either_name(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0, commit=False)
        expected = wire.GetTransactionOutcomeResponse(
            outcome=wire.TRANSACTION_OUTCOME_ABORTED,
            abort_reason=wire.ABORT_REASON_CLIENT,
            transactional_id="app",
            producer_id=key.producer_id,
            current_epoch=1,
        )
        assert await outcome(coordinator, transactional_id="app") == expected
        assert await outcome(coordinator, producer_id=key.producer_id) == expected
        ongoing = await outcome(coordinator, transactional_id="app", epoch=1)
        assert ongoing.outcome == wire.TRANSACTION_OUTCOME_ONGOING
        assert ongoing.time_left_ms == TIMEOUT_MS


async def test_a_transaction_that_is_none_is_refused(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        with pytest.raises(InvalidRequestError, match="never given out: the current one is 0"):
            await outcome(coordinator, producer_id=key.producer_id, epoch=1)
        with pytest.raises(InvalidRequestError, match="neither transactional_id nor producer_id"):
            await outcome(coordinator)
        with pytest.raises(InvalidRequestError, match="producer_epoch"):
            await outcome(coordinator, producer_id=key.producer_id, epoch=-1)


async def test_nothing_is_answered_before_this_instance_is_in_charge(cluster: Cluster) -> None:
    async with cluster.coordinator(claim=False) as coordinator:
        with pytest.raises(CoordinatorLoadInProgressError):
            await outcome(coordinator, transactional_id="app")
