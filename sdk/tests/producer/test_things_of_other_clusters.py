"""Handles and ids that name their cluster: a client of another cluster refuses them by name."""

from dataclasses import replace

import pytest
from joint_fakes import HANDLE, RECEIPT, ends, joint_cluster
from producer_harness import FakeCluster, open_client

from aiosemel import (
    InvalidRequestError,
    JointHandle,
    JointReceipt,
    PreparedTransactionId,
)
from aiosemel.errors import InconsistentClusterIdError
from semel.coordinator.v1 import transactions_pb2 as wire

ELSEWHERE = replace(HANDLE, cluster_id="other")
REFUSED = "is in cluster other, and this client belongs to cluster"
PREPARED = PreparedTransactionId(transactional_id="a:b", producer_id=7, producer_epoch=3)


@pytest.fixture
def fake() -> FakeCluster:
    fake = joint_cluster()
    fake.canned["coordinator:1", "CompletePreparedTxn"] = wire.CompletePreparedTxnResponse()
    return fake


async def test_writer_does_not_join_in_another_cluster(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        writer = client.join(ELSEWHERE)
        with pytest.raises(InconsistentClusterIdError, match=REFUSED):
            await writer.join()
        async with client.join(HANDLE) as other:
            assert not other.already_committed, "the client works on"
    assert len(fake.asked(wire.JoinTxnRequest)) == 1


async def test_owner_ends_nothing_in_another_cluster(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(ELSEWHERE)
        for attempt in (joint.commit([RECEIPT]), joint.abort(), joint.keep_alive()):
            with pytest.raises(InconsistentClusterIdError, match=REFUSED):
                await attempt
        receipt = replace(RECEIPT, handle=ELSEWHERE)
        with pytest.raises(InconsistentClusterIdError, match=REFUSED):
            await client.joint_transaction_of(HANDLE).commit([receipt])
    assert ends(fake) == []


async def test_handles_and_receipts_of_a_client_name_its_cluster(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        async with client.join(HANDLE) as writer:
            receipt = JointReceipt.from_json((await writer.finish()).to_json())
        cluster_id = receipt.handle.cluster_id
        joint = client.joint_transaction_of(HANDLE)
        handle = JointHandle.from_json(joint.handle.to_json())
        await client.joint_transaction_of(receipt.handle).commit([receipt])
    assert cluster_id
    assert handle.cluster_id == cluster_id
    assert handle == HANDLE, "a handle without a cluster names the same transaction"


def test_text_of_a_prepared_transaction_may_name_its_cluster() -> None:
    named = replace(PREPARED, cluster_id="c_1-x")
    assert str(named) == str(PREPARED) == "7:3:a:b", "systems outside use it as a key"
    assert named.qualified == "7:3@c_1-x:a:b"
    assert PREPARED.qualified == "7:3:a:b"
    again = PreparedTransactionId.parse(named.qualified)
    assert (again, again.cluster_id) == (PREPARED, "c_1-x")
    assert PreparedTransactionId.parse("7:3:a:b").cluster_id == ""
    for text in ("7:3@:a", "7:@c:a", "7:3@c:", "x:3:a"):
        with pytest.raises(InvalidRequestError):
            PreparedTransactionId.parse(text)


async def test_prepared_transaction_of_another_cluster_is_not_completed(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        with pytest.raises(InconsistentClusterIdError, match=REFUSED):
            await client.admin().complete_prepared(
                replace(PREPARED, cluster_id="other"), commit=True
            )
        assert not fake.asked(wire.CompletePreparedTxnRequest)
        await client.admin().complete_prepared(PREPARED, commit=True)
    assert len(fake.asked(wire.CompletePreparedTxnRequest)) == 1
