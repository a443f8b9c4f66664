"""Joint transactions: the requests of owners and writers, and their view of each answer."""

import asyncio
import pickle
from dataclasses import replace

import pytest
from joint_fakes import HANDLE, NAME, RECEIPT, ends, joint_cluster
from network_faults import Hold, LoseReply, Refuse
from producer_harness import GROUP, OFFSETS, QUICK, FakeCluster, elapse, open_client

from aiosemel import (
    ClosedError,
    IllegalStateError,
    InvalidRequestError,
    JointHandle,
    JointOutcome,
    JointOutcomeUnknownError,
    JointOwnerMismatchError,
    JointReceipt,
    ProducerFencedError,
    ProducerOptions,
    RequestTimedOutError,
    TransactionAbortedError,
)
from aiosemel.errors import (
    CoordinatorLoadInProgressError,
    InvalidProducerIdMappingError,
    OutOfOrderSequenceNumberError,
    TransactionAbortableError,
)
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.ids import GroupId, TopicPartition

COMMIT = participants.TRANSACTION_RESULT_COMMIT
ABORT = participants.TRANSACTION_RESULT_ABORT


@pytest.fixture
def fake() -> FakeCluster:
    return joint_cluster()


# -- what is passed on --------------------------------------------------------------------------


def test_a_handle_survives_as_text_and_as_a_pickle() -> None:
    assert JointHandle.from_json(HANDLE.to_json()) == HANDLE
    assert JointHandle.from_json(HANDLE.to_json().encode()) == HANDLE
    assert pickle.loads(pickle.dumps(HANDLE)) == HANDLE  # noqa: S301 - its own


def test_a_receipt_survives_as_text() -> None:
    assert JointReceipt.from_json(RECEIPT.to_json()) == JointReceipt(
        handle=HANDLE,
        producer_id=5,
        producer_epoch=2,
        participants=RECEIPT.participants,
    )
    skipped = JointReceipt(handle=HANDLE, already_committed=True)
    assert JointReceipt.from_json(skipped.to_json()) == skipped


@pytest.mark.parametrize("text", ["", "[]", "{", b"\xff", '{"handle": {}}', '{"handle": 7}'])
def test_other_text_is_refused(text: str | bytes) -> None:
    for kind in (JointHandle, JointReceipt):
        with pytest.raises(InvalidRequestError):
            kind.from_json(text)


def test_a_handle_that_cannot_work_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="run is empty"):
        JointHandle(transactional_id="a", txn_version=0, owner="o", run="")
    with pytest.raises(InvalidRequestError, match="txn_version is -1, not 0 to"):
        JointHandle(transactional_id="a", txn_version=-1, owner="o", run="r")
    with pytest.raises(InvalidRequestError, match="txn_version is 9223372036854775808, not"):
        JointHandle(transactional_id="a", txn_version=1 << 63, owner="o", run="r")
    with pytest.raises(InvalidRequestError, match="transaction_timeout_ms is 2147483648, not 1 to"):
        replace(HANDLE, transaction_timeout_ms=1 << 31)


# -- writers ------------------------------------------------------------------------------------


async def test_a_writer_writes_in_its_own_name_and_ends_nothing(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        async with client.join(HANDLE, name="task 1") as writer:
            assert not writer.already_committed
            await writer.send_columns("t", [b"1", b"2"], partition=0)
            await writer.send("t", b"3", partition=2)
            await writer.send_offsets(OFFSETS, GROUP)
            receipt = await writer.finish()
            assert await writer.finish() is receipt
            with pytest.raises(IllegalStateError):
                await writer.send("t", b"late")
        with pytest.raises(ClosedError):
            await writer.send("t", b"later")
    (join,) = fake.asked(wire.JoinTxnRequest)
    assert join.transaction == NAME
    assert join.writer.startswith("task 1-")
    assert join.transaction_timeout_ms == 3_000
    assert (receipt.producer_id, receipt.producer_epoch) == (77, 3)
    topic_id = fake.topics["t"]
    assert set(receipt.participants) == {
        TopicPartition(topic_id, 0),
        TopicPartition(topic_id, 2),
        GroupId(GROUP.group_id),
    }
    assert fake.stored("t", 0) == [b"1", b"2"]
    assert "EndTxn" not in fake.names()
    assert "EndJointTxn" not in fake.names()


async def test_a_writer_of_a_committed_version_skips_its_work(fake: FakeCluster) -> None:
    fake.canned["coordinator:1", "JoinTxn"] = wire.JoinTxnResponse(already_committed=True)
    async with open_client(fake) as client, client.join(HANDLE) as writer:
        assert writer.already_committed
        with pytest.raises(IllegalStateError):
            await writer.send("t", b"again")
        assert await writer.finish() == JointReceipt(handle=HANDLE, already_committed=True)


async def test_a_lost_join_is_repeated_in_the_same_name(fake: FakeCluster) -> None:
    fake.then("JoinTxn", LoseReply())
    async with open_client(fake) as client, client.join(HANDLE):
        first, second = fake.asked(wire.JoinTxnRequest)
        assert first == second


async def test_two_writers_of_one_name_are_two(fake: FakeCluster) -> None:
    async with open_client(fake) as client, client.join(HANDLE), client.join(HANDLE):
        first, second = fake.asked(wire.JoinTxnRequest)
        assert first.writer != second.writer


async def test_a_join_that_is_refused_raises_why_and_leaves_nothing(fake: FakeCluster) -> None:
    fake.then("JoinTxn", Refuse(JointOwnerMismatchError("x", owner="another")))
    async with open_client(fake) as client:
        writer = client.join(HANDLE)
        with pytest.raises(IllegalStateError):
            assert writer.already_committed
        with pytest.raises(JointOwnerMismatchError):
            await writer.__aenter__()
        with pytest.raises(ClosedError):
            await writer.join()


async def test_a_join_is_made_once(fake: FakeCluster) -> None:
    fake.then("JoinTxn", Refuse(ProducerFencedError("x")))
    async with open_client(fake) as client:
        writer = client.join(HANDLE)
        with pytest.raises(ProducerFencedError):
            await writer.join()
        await writer.join()
        with pytest.raises(IllegalStateError):
            await writer.join()


async def test_a_send_that_fails_leaves_no_receipt(fake: FakeCluster) -> None:
    async with open_client(fake) as client, client.join(HANDLE) as writer:
        fake.then("Produce", Refuse(OutOfOrderSequenceNumberError("x")))
        await writer.send("t", b"v", partition=0)
        with pytest.raises(TransactionAbortedError):
            await writer.finish()
        with pytest.raises(TransactionAbortableError):
            await writer.send_and_wait("t", b"w")
    assert "EndTxn" not in fake.names()


async def test_a_finish_that_is_not_done_in_time_can_be_repeated(fake: FakeCluster) -> None:
    released = asyncio.Event()
    fake.then("Produce", Hold(released))
    options = ProducerOptions(max_block_ms=100)
    async with open_client(fake) as client, client.join(HANDLE, options=options) as writer:
        await writer.send("t", b"v", partition=0)
        with pytest.raises(RequestTimedOutError):
            await writer.finish()
        released.set()
        assert len((await writer.finish()).participants) == 1


async def test_an_open_writer_keeps_its_transaction_alive(fake: FakeCluster) -> None:
    fake.then("KeepAliveTxn", Refuse(CoordinatorLoadInProgressError("x")))
    async with open_client(fake) as client:
        async with client.join(HANDLE):
            await elapse(3.5)
        asked = fake.asked(wire.KeepAliveTxnRequest)
        assert len(asked) == 4
        assert asked[0].transaction == NAME
        await elapse(10)
        assert len(fake.asked(wire.KeepAliveTxnRequest)) == 4


@pytest.mark.parametrize("is_committed", [True, False])
async def test_a_writer_hears_that_its_transaction_is_over(
    fake: FakeCluster, *, is_committed: bool
) -> None:
    if is_committed:
        answer = wire.KeepAliveTxnResponse(already_committed=True)
        fake.canned["coordinator:1", "KeepAliveTxn"] = answer
    else:
        fake.then("KeepAliveTxn", Refuse(TransactionAbortableError("timed out")))
    async with open_client(fake) as client, client.join(HANDLE) as writer:
        await writer.send_and_wait("t", b"v")
        await elapse(1.5)
        with pytest.raises(TransactionAbortableError):
            await writer.send("t", b"w")
        with pytest.raises(TransactionAbortedError):
            await writer.finish()


async def test_a_writer_of_a_run_that_is_superseded_gives_no_receipt(fake: FakeCluster) -> None:
    fake.then("KeepAliveTxn", Refuse(ProducerFencedError("a newer run")))
    async with open_client(fake) as client, client.join(HANDLE) as writer:
        await writer.send_and_wait("t", b"v")
        await elapse(1.5)
        for _ in range(2):
            with pytest.raises(TransactionAbortedError) as raised:
                await writer.finish()
            assert isinstance(raised.value.__cause__, ProducerFencedError)


# -- owners -------------------------------------------------------------------------------------


async def test_an_owner_commits_the_receipts_that_it_names(fake: FakeCluster) -> None:
    skipped = JointReceipt(handle=HANDLE, already_committed=True)
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(RECEIPT.handle)
        outcome = await joint.commit([RECEIPT, skipped], wait_until_visible=True)
    assert outcome is joint.outcome is JointOutcome.COMMITTED
    (end,) = ends(fake)
    assert end.transaction == NAME
    assert end.result == COMMIT
    assert end.wait == wire.WAIT_FOR_COMPLETE
    (named,) = end.writers
    assert (named.producer_id, named.producer_epoch) == (5, 2)
    assert named.participants == participants.Participants(
        topics=[participants.TopicPartitions(topic_id="id", partitions=[0, 3])], group_ids=["g"]
    )


async def test_a_client_has_one_run_for_all_it_owns(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        handles = [client.joint_transaction("sink", n, owner="me").handle for n in range(2)]
        assert handles[0].run == handles[1].run
        assert client.joint_transaction("sink", 2, owner="me", run="mine").handle.run == "mine"


async def test_receipts_of_another_transaction_are_refused(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        joint = client.joint_transaction("sink", 8, owner="query", run="run")
        with pytest.raises(InvalidRequestError, match="a receipt belongs to version 7"):
            await joint.commit([RECEIPT])
    assert ends(fake) == []


async def test_a_lost_commit_is_repeated_unchanged(fake: FakeCluster) -> None:
    fake.then("EndJointTxn", LoseReply())
    async with open_client(fake) as client:
        await client.joint_transaction_of(HANDLE).commit([RECEIPT])
    first, second = ends(fake)
    assert first == second
    assert first.end_id


async def test_a_commit_says_that_another_was_first(fake: FakeCluster) -> None:
    answer = wire.EndJointTxnResponse(result=COMMIT, already_committed=True)
    fake.canned["coordinator:1", "EndJointTxn"] = answer
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(HANDLE)
        assert await joint.commit([]) is JointOutcome.ALREADY_COMMITTED
        assert not joint.repeated_in_run
        assert await joint.abort() is JointOutcome.ALREADY_COMMITTED


async def test_a_commit_says_that_its_run_has_committed_the_version_before(
    fake: FakeCluster,
) -> None:
    fake.canned["coordinator:1", "EndJointTxn"] = wire.EndJointTxnResponse(
        result=COMMIT, already_committed=True, repeated_in_run=True
    )
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(HANDLE)
        assert await joint.commit([]) is JointOutcome.ALREADY_COMMITTED
        assert joint.repeated_in_run


@pytest.mark.parametrize(
    "error",
    [
        TransactionAbortableError("x", outcome="ABORTED", reason="TIMED_OUT"),
        ProducerFencedError("x", outcome="ABORTED", reason="FENCED"),
    ],
)
async def test_a_definite_abort_leaves_the_version_to_be_done_again(
    fake: FakeCluster, error: TransactionAbortableError | ProducerFencedError
) -> None:
    fake.then("EndJointTxn", Refuse(error))
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(HANDLE)
        with pytest.raises(TransactionAbortedError) as aborted:
            await joint.commit([RECEIPT])
        assert type(aborted.value.__cause__) is type(error)
        assert aborted.value.details["outcome"] == "ABORTED"
        assert joint.outcome is None
        assert await joint.commit([]) is JointOutcome.COMMITTED
    first, second = ends(fake)
    assert first.end_id != second.end_id


async def test_an_unknown_outcome_is_asked_for_again(fake: FakeCluster) -> None:
    fake.then("EndJointTxn", *[LoseReply()] * 100)
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(HANDLE, QUICK)
        with pytest.raises(JointOutcomeUnknownError) as unknown:
            await joint.commit([RECEIPT])
        assert (unknown.value.transactional_id, unknown.value.txn_version) == ("sink", 7)
        with pytest.raises(IllegalStateError, match="outcome must be known"):
            await joint.abort()
        with pytest.raises(IllegalStateError, match="other receipts"):
            await joint.commit([])
        fake.script["EndJointTxn"].clear()
        assert await joint.commit([RECEIPT]) is JointOutcome.COMMITTED
    assert len({end.end_id for end in ends(fake)}) == 1


async def test_an_error_that_says_nothing_leaves_the_outcome_unknown(fake: FakeCluster) -> None:
    fake.then("EndJointTxn", Refuse(InvalidProducerIdMappingError("x")))
    async with open_client(fake) as client:
        with pytest.raises(JointOutcomeUnknownError):
            await client.joint_transaction_of(HANDLE).commit([])


async def test_an_error_may_say_that_it_is_committed(fake: FakeCluster) -> None:
    """The markers took too long to wait for."""
    late = [Refuse(RequestTimedOutError("x", outcome="COMMITTED"))] * 100
    fake.then("EndJointTxn", *late)
    async with open_client(fake) as client:
        joint = client.joint_transaction_of(HANDLE, QUICK)
        assert await joint.commit([], wait_until_visible=True) is JointOutcome.COMMITTED


async def test_a_call_that_is_wrong_is_raised_as_it_is(fake: FakeCluster) -> None:
    fake.then("EndJointTxn", Refuse(JointOwnerMismatchError("x")))
    async with open_client(fake) as client:
        with pytest.raises(JointOwnerMismatchError):
            await client.joint_transaction_of(HANDLE).commit([])


async def test_only_an_outcome_ends_the_doubt_about_a_commit(fake: FakeCluster) -> None:
    """It may have been decided before the id changed owners: an abort would come after it."""
    fake.then("EndJointTxn", *[Refuse(RequestTimedOutError("x"))] * 100)
    async with open_client(fake) as client:
        async with client.joint_transaction_of(HANDLE, QUICK) as joint:
            with pytest.raises(JointOutcomeUnknownError):
                await joint.commit([RECEIPT])
            fake.script["EndJointTxn"].clear()
            for error in (JointOwnerMismatchError("x"), InvalidRequestError("x")):
                fake.then("EndJointTxn", Refuse(error))
                with pytest.raises(JointOutcomeUnknownError) as unknown:
                    await joint.commit([RECEIPT])
                assert type(unknown.value.__cause__) is type(error)
            fake.then("EndJointTxn", Refuse(TransactionAbortableError("x", outcome="ABORTED")))
            with pytest.raises(TransactionAbortedError):
                await joint.commit([RECEIPT])
        assert [end.result for end in ends(fake)][-2:] == [COMMIT, ABORT]


# -- blocks -------------------------------------------------------------------------------------


async def test_a_block_keeps_alive_what_may_not_be_open_yet(fake: FakeCluster) -> None:
    fake.then("KeepAliveTxn", Refuse(TransactionAbortableError("not open")))
    async with open_client(fake) as client:
        async with client.joint_transaction_of(HANDLE) as joint:
            await elapse(3.5)
            assert len(fake.asked(wire.KeepAliveTxnRequest)) == 3
            await joint.commit([RECEIPT])
        with pytest.raises(ClosedError):
            await joint.commit([RECEIPT])
        await joint.close()
    assert [end.result for end in ends(fake)] == [COMMIT]


async def test_a_block_of_a_superseded_run_is_not_kept_alive(fake: FakeCluster) -> None:
    fake.then("KeepAliveTxn", Refuse(ProducerFencedError("x")))
    async with open_client(fake) as client, client.joint_transaction_of(HANDLE):
        await elapse(5)
        assert len(fake.asked(wire.KeepAliveTxnRequest)) == 1


async def test_a_block_aborts_an_uncommitted_transaction(fake: FakeCluster) -> None:
    answer = wire.EndJointTxnResponse(result=ABORT)
    fake.canned["coordinator:1", "EndJointTxn"] = answer
    async with open_client(fake) as client, client.joint_transaction_of(HANDLE) as joint:
        pass
    assert joint.outcome is JointOutcome.ABORTED
    assert [end.result for end in ends(fake)] == [ABORT]


async def test_an_abort_that_fails_does_not_hide_why(fake: FakeCluster) -> None:
    fake.then("EndJointTxn", Refuse(ProducerFencedError("x")))
    async with open_client(fake) as client:
        with pytest.raises(ZeroDivisionError):
            async with client.joint_transaction_of(HANDLE):
                raise ZeroDivisionError


async def test_a_block_leaves_a_commit_alone_whose_outcome_is_unknown(fake: FakeCluster) -> None:
    fake.then("EndJointTxn", *[LoseReply()] * 100)
    async with open_client(fake) as client:
        with pytest.raises(JointOutcomeUnknownError):
            async with client.joint_transaction_of(HANDLE, QUICK) as joint:
                await joint.commit([RECEIPT])
        fake.script["EndJointTxn"].clear()
        assert await joint.commit([RECEIPT]) is JointOutcome.COMMITTED
        with pytest.raises(ClosedError):
            await joint.commit([])
    assert {end.result for end in ends(fake)} == {COMMIT}
    assert len({end.end_id for end in ends(fake)}) == 1
