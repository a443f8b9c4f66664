"""A process that neither writes nor ends a joint transaction keeps it alive until it is over."""

import asyncio

import pytest
from network_faults import Refuse
from producer_harness import FakeCluster, elapse, open_client

from aiosemel import ClosedError, JointHandle, ProducerFencedError, SemelError
from aiosemel.errors import (
    CoordinatorLoadInProgressError,
    JointOwnerMismatchError,
    TransactionAbortableError,
    TransactionalIdAuthorizationFailedError,
)
from semel.coordinator.v1 import transactions_pb2 as wire

HANDLE = JointHandle(
    transactional_id="sink", txn_version=7, owner="query", run="run", transaction_timeout_ms=3_000
)


@pytest.fixture
def fake() -> FakeCluster:
    cluster = FakeCluster()
    cluster.canned["coordinator:1", "KeepAliveTxn"] = wire.KeepAliveTxnResponse()
    return cluster


@pytest.mark.parametrize(
    "error", [None, TransactionAbortableError, ProducerFencedError, JointOwnerMismatchError]
)
async def test_another_user_keeps_it_alive_until_it_is_over(
    fake: FakeCluster, error: type[SemelError] | None
) -> None:
    fake.then("KeepAliveTxn", Refuse(CoordinatorLoadInProgressError("x")))
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(HANDLE)
        keeping = asyncio.create_task(joint.keep_alive())
        await elapse(3.5)
        assert len(fake.asked(wire.KeepAliveTxnRequest)) == 4
        if error is None:
            answer = wire.KeepAliveTxnResponse(already_committed=True)
            fake.canned["coordinator:1", "KeepAliveTxn"] = answer
        else:
            fake.then("KeepAliveTxn", Refuse(error("over")))
        await elapse(1)
        assert keeping.done()
    assert "EndJointTxn" not in fake.names()


async def test_what_is_closed_keeps_nothing_alive(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(HANDLE)
        await joint.close()
        with pytest.raises(ClosedError):
            await joint.keep_alive()


@pytest.mark.parametrize("closed", ["joint", "client"])
async def test_what_is_closed_meanwhile_is_kept_alive_no_longer_and_not_said_to_be_over(
    fake: FakeCluster, closed: str
) -> None:
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(HANDLE)
        keeping = asyncio.create_task(joint.keep_alive())
        await elapse(1.5)
        await (joint.close() if closed == "joint" else client.close())
        with pytest.raises(ClosedError):
            await keeping
    assert len(fake.asked(wire.KeepAliveTxnRequest)) == 1


async def test_a_caller_that_may_not_keep_it_alive_is_told_so(fake: FakeCluster) -> None:
    fake.then("KeepAliveTxn", Refuse(TransactionalIdAuthorizationFailedError("not yours")))
    async with open_client(fake) as client:
        with pytest.raises(TransactionalIdAuthorizationFailedError):
            await client.joint_transaction_of(HANDLE).keep_alive()
