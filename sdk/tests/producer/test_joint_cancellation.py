"""Joint transactions whose calls are cancelled, or repeated: no answer is lost, none is made up."""

import asyncio

import pytest
from joint_fakes import HANDLE, RECEIPT, ends, joint_cluster
from network_faults import Hold, HoldReply, LoseReply, Refuse
from producer_harness import QUICK, FakeCluster, elapse, open_client

from aiosemel import (
    IllegalStateError,
    JointOutcome,
    JointOutcomeUnknownError,
    JointReceipt,
    ProducerOptions,
)
from aiosemel.errors import ClosedError, JointOwnerMismatchError, TransactionAbortableError
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import transactions_pb2 as wire

COMMIT, ABORT = participants.TRANSACTION_RESULT_COMMIT, participants.TRANSACTION_RESULT_ABORT
NEVER = asyncio.Event


@pytest.fixture
def fake() -> FakeCluster:
    return joint_cluster()


# -- owners ---------------------------------------------------------------------------------------


async def test_a_commit_that_is_cancelled_learns_its_outcome(fake: FakeCluster) -> None:
    never = asyncio.Event()
    fake.then("EndJointTxn", HoldReply(never))
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(HANDLE)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await joint.commit([RECEIPT])
        assert joint.outcome is JointOutcome.COMMITTED


async def test_a_commit_that_is_cancelled_and_not_answered_is_unknown(fake: FakeCluster) -> None:
    never = asyncio.Event()
    fake.then("EndJointTxn", *[HoldReply(never)] * 10)
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(HANDLE)
        with pytest.raises(JointOutcomeUnknownError) as unknown:
            async with asyncio.timeout(0.1):
                await joint.commit([RECEIPT])
        assert isinstance(unknown.value.__cause__, asyncio.CancelledError)
        assert joint.outcome is None


async def test_a_commit_that_is_cancelled_twice_is_unknown(fake: FakeCluster) -> None:
    never = asyncio.Event()
    fake.then("EndJointTxn", *[HoldReply(never)] * 10)
    async with open_client(fake) as client:
        committing = asyncio.create_task(client.joint_transaction_of(HANDLE).commit([]))
        for _ in range(2):
            await elapse(0.1)
            committing.cancel()
        with pytest.raises(JointOutcomeUnknownError):
            await committing


async def test_a_commit_that_is_cancelled_may_come_to_nothing(fake: FakeCluster) -> None:
    never = asyncio.Event()
    refused = Refuse(TransactionAbortableError("x", outcome="ABORTED"))
    fake.then("EndJointTxn", HoldReply(never), refused)
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(HANDLE)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await joint.commit([RECEIPT])
        assert joint.outcome is None


async def test_only_an_outcome_ends_the_doubt_about_a_commit_that_was_cancelled(
    fake: FakeCluster,
) -> None:
    fake.then("EndJointTxn", HoldReply(NEVER()), Refuse(JointOwnerMismatchError("x")))
    async with open_client(fake) as client:
        with pytest.raises(JointOutcomeUnknownError):
            async with asyncio.timeout(0.1), client.joint_transaction_of(HANDLE) as joint:
                await joint.commit([RECEIPT])
    assert {end.result for end in ends(fake)} == {COMMIT}


async def test_an_abort_that_is_cancelled_can_be_called_again(fake: FakeCluster) -> None:
    fake.canned["coordinator:1", "EndJointTxn"] = wire.EndJointTxnResponse(result=ABORT)
    fake.then("EndJointTxn", HoldReply(NEVER()))
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(HANDLE)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await joint.abort()
        assert joint.outcome is None
        assert await joint.abort() is JointOutcome.ABORTED


@pytest.mark.parametrize("grace_ms", [0, 200])
async def test_a_cancelled_block_does_not_wait_long_for_its_abort(
    fake: FakeCluster, grace_ms: int
) -> None:
    fake.then("EndJointTxn", *[Hold(NEVER())] * 10)
    options = ProducerOptions(cancelled_commit_grace_ms=grace_ms)
    async with open_client(fake) as client:
        now = asyncio.get_running_loop().time
        before = now()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1), client.joint_transaction_of(HANDLE, options):
                await NEVER().wait()
        assert now() - before == pytest.approx(1 + grace_ms / 1000, abs=0.01)


async def test_a_cancelled_block_aborts(fake: FakeCluster) -> None:
    fake.canned["coordinator:1", "EndJointTxn"] = wire.EndJointTxnResponse(result=ABORT)
    async with open_client(fake) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1), client.joint_transaction_of(HANDLE) as joint:
                await NEVER().wait()
        assert joint.outcome is JointOutcome.ABORTED
    assert [end.result for end in ends(fake)] == [ABORT]


# -- repeats --------------------------------------------------------------------------------------


async def test_a_commit_that_is_repeated_is_the_same_commit(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(HANDLE)
        assert await joint.commit([RECEIPT]) is JointOutcome.COMMITTED
        assert await joint.commit([RECEIPT], wait_until_visible=True) is JointOutcome.COMMITTED
    first, second = ends(fake)
    assert first.end_id == second.end_id


async def test_a_commit_with_other_receipts_is_another_commit(fake: FakeCluster) -> None:
    other = JointReceipt(handle=HANDLE, producer_id=6, producer_epoch=0)
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(HANDLE)
        await joint.commit([RECEIPT])
        answer = wire.EndJointTxnResponse(result=COMMIT, already_committed=True)
        fake.canned["coordinator:1", "EndJointTxn"] = answer
        assert await joint.commit([other]) is JointOutcome.ALREADY_COMMITTED
    first, second = ends(fake)
    assert first.end_id != second.end_id


async def test_an_abort_of_a_committed_transaction_changes_nothing(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(HANDLE)
        await joint.commit([RECEIPT])
        assert await joint.abort([RECEIPT]) is JointOutcome.ALREADY_COMMITTED
        assert joint.outcome is JointOutcome.COMMITTED


async def test_no_abort_is_sent_after_a_commit_that_is_unknown(fake: FakeCluster) -> None:
    """Not even where an abort came before it."""
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(HANDLE, QUICK)
        fake.canned["coordinator:1", "EndJointTxn"] = wire.EndJointTxnResponse(result=ABORT)
        await joint.abort()
        fake.then("EndJointTxn", *[LoseReply()] * 100)
        with pytest.raises(JointOutcomeUnknownError):
            await joint.commit([RECEIPT])
        with pytest.raises(IllegalStateError, match="outcome must be known"):
            await joint.abort()


# -- writers --------------------------------------------------------------------------------------


async def test_a_join_that_is_cancelled_can_be_called_again(fake: FakeCluster) -> None:
    fake.then("JoinTxn", HoldReply(NEVER()))
    async with open_client(fake) as client:
        writer = client.join(HANDLE)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await writer.join()
        await writer.join()
        await writer.send("t", b"v")
    first, second = fake.asked(wire.JoinTxnRequest)
    assert first == second


async def test_a_writer_joins_in_one_task(fake: FakeCluster) -> None:
    released = asyncio.Event()
    fake.then("JoinTxn", Hold(released))
    async with open_client(fake) as client:
        writer = client.join(HANDLE)
        joining = asyncio.create_task(writer.join())
        await elapse(0.1)
        with pytest.raises(IllegalStateError):
            await writer.join()
        released.set()
        await joining


async def test_a_finish_that_is_cancelled_can_be_called_again(fake: FakeCluster) -> None:
    released = asyncio.Event()
    fake.then("Produce", Hold(released))
    async with open_client(fake) as client, client.join(HANDLE) as writer:
        await writer.send("t", b"v", partition=0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await writer.finish()
        released.set()
        await writer.send("t", b"w", partition=1)
        assert len((await writer.finish()).participants) == 2
    assert fake.stored("t", 1) == [b"w"]


async def test_a_writer_whose_close_is_cancelled_sends_nothing_more(fake: FakeCluster) -> None:
    fake.then("Produce", *[HoldReply(NEVER())] * 10)
    async with open_client(fake) as client:
        writer = client.join(HANDLE)
        await writer.join()
        delivery = await writer.send("t", b"v", partition=0)
        await elapse(0.1)
        closing = asyncio.create_task(writer.close())
        await asyncio.sleep(0)
        closing.cancel()
        await elapse(0.1)
        assert closing.cancelled()
        assert delivery.done()


async def test_a_writer_that_is_closed_while_it_joins_keeps_nothing_alive(
    fake: FakeCluster,
) -> None:
    released = asyncio.Event()
    fake.then("JoinTxn", HoldReply(released))
    async with open_client(fake) as client:
        writer = client.join(HANDLE)
        joining = asyncio.create_task(writer.join())
        await elapse(0.1)
        await writer.close()
        released.set()
        with pytest.raises(ClosedError):
            await joining
        await elapse(10)
    assert fake.names() == ["JoinTxn"]


async def test_a_send_that_waits_while_its_writer_is_closed_sends_nothing(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        writer = client.join(HANDLE)
        await writer.join()
        sending = asyncio.create_task(writer.send("not-there-yet", b"v"))
        await elapse(0.1)
        await writer.close()
        fake.create_topic("not-there-yet")
        with pytest.raises(TransactionAbortableError, match="the writer is closed"):
            await sending
    assert fake.names() == ["JoinTxn"]
