"""Joint transactions at the service: form, markers, restarts, and what operators see."""

import asyncio
from dataclasses import dataclass

import pytest
from google.protobuf.message import Message
from structlog.testing import capture_logs
from transactions_harness import A0, A1, TIMEOUT_MS
from transactions_service_harness import CALL, Cluster, Coordinator, until

from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import (
    CoordinatorLoadInProgressError,
    InvalidRequestError,
    RequestTimedOutError,
    TransactionAbortableError,
)
from semel_common.ids import Participant
from semel_coordinator.transactions.loops.timeout_sweep import abort_timed_out
from semel_coordinator.transactions.machine import TransactionLimits
from semel_coordinator.transactions.rpc.participant_messages import write_participants
from semel_runtime.authentication.principal import Origin
from semel_runtime.server.calls import Call

COMMIT = participants.TRANSACTION_RESULT_COMMIT
ABORT = participants.TRANSACTION_RESULT_ABORT
LIST = wire.ListTransactionsRequest


def named(version: int = 1, run: str = "run") -> wire.JointTransaction:
    return wire.JointTransaction(
        transactional_id="joint", txn_version=version, owner="owner", run=run
    )


def join_of(writer: str, version: int = 1, run: str = "run") -> wire.JoinTxnRequest:
    return wire.JoinTxnRequest(
        transaction=named(version, run), writer=writer, transaction_timeout_ms=TIMEOUT_MS
    )


def wrote(writer: wire.JoinTxnResponse, *those: Participant) -> wire.JointWriter:
    out = wire.JointWriter(producer_id=writer.producer_id, producer_epoch=writer.producer_epoch)
    write_participants(those, out.participants)
    return out


def end_of(
    *writers: wire.JointWriter,
    version: int = 1,
    result: participants.TransactionResult.ValueType = COMMIT,
    wait: wire.WaitFor.ValueType = wire.WAIT_FOR_DECIDED,
    end_id: str = "end",
) -> wire.EndJointTxnRequest:
    return wire.EndJointTxnRequest(
        transaction=named(version), result=result, writers=writers, end_id=end_id, wait=wait
    )


@dataclass
class Joint:
    """The joint handlers of a coordinator."""

    coordinator: Coordinator

    async def ask(self, request: Message, call: Call = CALL) -> Message:
        return await self.coordinator.ask(request, call)

    async def join(self, request: wire.JoinTxnRequest) -> wire.JoinTxnResponse:
        response = await self.ask(request)
        assert isinstance(response, wire.JoinTxnResponse)
        return response

    async def keep_alive(self, version: int = 1) -> wire.KeepAliveTxnResponse:
        request = wire.KeepAliveTxnRequest(transaction=named(version))
        response = await self.ask(request)
        assert isinstance(response, wire.KeepAliveTxnResponse)
        return response

    async def end(
        self, request: wire.EndJointTxnRequest, call: Call = CALL
    ) -> wire.EndJointTxnResponse:
        response = await self.ask(request, call)
        assert isinstance(response, wire.EndJointTxnResponse)
        return response

    async def described(self) -> wire.TransactionalIdDescription:
        request = wire.DescribeTransactionsRequest(transactional_ids=["joint"])
        response = await self.ask(request)
        assert isinstance(response, wire.DescribeTransactionsResponse)
        return response.descriptions[0]

    async def listed(
        self, wanted: wire.ListTransactionsRequest | None = None
    ) -> list[wire.TransactionListing]:
        response = await self.ask(wanted or wire.ListTransactionsRequest())
        assert isinstance(response, wire.ListTransactionsResponse)
        return list(response.transactions)


async def test_markers_of_all_writers_are_written(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        joint = Joint(coordinator)
        first, second = [await joint.join(join_of(each)) for each in "ab"]
        wait = wire.WAIT_FOR_COMPLETE
        ended = await joint.end(end_of(wrote(first, A0), wrote(second, A0, A1), wait=wait))
        assert ended == wire.EndJointTxnResponse(result=COMMIT)
        assert cluster.broker_0.told == ["0 commit topic-a/0"] * 2
        assert cluster.broker_1.told == ["0 commit topic-a/1"]
        repeated = await joint.end(end_of(wrote(first, A0), wrote(second, A0, A1), wait=wait))
        assert repeated == ended
        skipped = await joint.join(join_of("c"))
        assert skipped == wire.JoinTxnResponse(already_committed=True)
        assert (await joint.keep_alive()).already_committed


async def test_a_caller_waiting_for_markers_is_told_the_outcome_when_its_time_is_up(
    cluster: Cluster,
) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        joint = Joint(coordinator)
        writer = await joint.join(join_of("a"))
        deadline = asyncio.get_running_loop().time()
        request = end_of(wrote(writer, A0), wait=wire.WAIT_FOR_COMPLETE)
        with pytest.raises(RequestTimedOutError) as late:
            await joint.end(request, Call(origin=Origin(listener="default"), deadline=deadline))
        assert late.value.details == {"outcome": "COMMITTED"}


async def test_a_decision_survives_a_restart_whole(cluster: Cluster) -> None:
    """Nothing was sent yet: both writers' markers come after the restart."""
    async with cluster.coordinator(send=False) as coordinator:
        joint = Joint(coordinator)
        first, second = [await joint.join(join_of(each)) for each in "ab"]
        request = end_of(wrote(first, A0), wrote(second, A1))
        await joint.end(request)
    async with cluster.coordinator() as coordinator:
        await until(lambda: cluster.broker_0.told and cluster.broker_1.told)
        assert cluster.broker_0.told == ["0 commit topic-a/0"]
        assert cluster.broker_1.told == ["0 commit topic-a/1"]
        assert await Joint(coordinator).end(request) == wire.EndJointTxnResponse(result=COMMIT)


async def test_writers_go_on_over_a_restart(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        first = await Joint(coordinator).join(join_of("a"))
    async with cluster.coordinator(send=False) as coordinator:
        joint = Joint(coordinator)
        assert await joint.join(join_of("a")) == first
        second = await joint.join(join_of("b"))
        assert second.producer_id != first.producer_id
        await joint.end(end_of(wrote(first, A0), wrote(second, A0)))
        assert len(coordinator.machine.markers.pending()) == 2


async def test_a_version_that_is_not_kept_alive_is_aborted_and_logged(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        joint = Joint(coordinator)
        await joint.join(join_of("a"))
        cluster.clock.advance(TIMEOUT_MS - 1)
        assert not (await joint.keep_alive()).already_committed
        cluster.clock.advance(TIMEOUT_MS)
        with capture_logs() as logs:
            await abort_timed_out(coordinator.runner, coordinator.machine, cluster.clock)
        assert [log["event"] for log in logs] == ["joint transaction timed out"]
        with pytest.raises(TransactionAbortableError):
            await joint.keep_alive()


async def test_operators_see_the_writers(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        joint = Joint(coordinator)
        await coordinator.init()
        first, second = [await joint.join(join_of(each)) for each in "ab"]
        await joint.end(end_of(wrote(first, A0), wrote(second, A1)))
        ids = [entry.transactional_id for entry in await joint.listed()]
        assert ids == ["app", "joint"]
        third = await joint.join(join_of("c", version=2))
        (listed,) = await joint.listed(LIST(states=[wire.TRANSACTION_STATE_ONGOING]))
        assert listed == wire.TransactionListing(
            transactional_id="joint",
            state=wire.TRANSACTION_STATE_ONGOING,
            start_time_ms=cluster.clock.now_ms(),
            incomplete_transactions=2,
            transaction_timeout_ms=TIMEOUT_MS,
            last_update_time_ms=cluster.clock.now_ms(),
            joint_writers=1,
            position=f"{cluster.clock.now_ms()}-0-joint",
        )
        assert await joint.listed(LIST(producer_ids=[second.producer_id, 77])) == [listed]
        oldest_first = LIST(order=wire.LIST_TRANSACTIONS_ORDER_OLDEST_FIRST)
        ids = [entry.transactional_id for entry in await joint.listed(oldest_first)]
        assert ids == ["joint", "app"]
        described = await joint.described()
        assert described.joint == wire.JointDescription(
            owner="owner",
            run="run",
            committed_version=1,
            open_version=2,
            start_time_ms=cluster.clock.now_ms(),
            kept_alive_ms=cluster.clock.now_ms(),
            writers=[
                wire.JointWriterDescription(
                    writer="c",
                    producer_id=third.producer_id,
                    producer_epoch=third.producer_epoch,
                )
            ],
        )
        assert [
            (transaction.producer_id, transaction.producer_epoch, transaction.state)
            for transaction in described.transactions
        ] == [
            (first.producer_id, 0, wire.TRANSACTION_STATE_PREPARE_COMMIT),
            (second.producer_id, 0, wire.TRANSACTION_STATE_PREPARE_COMMIT),
            (third.producer_id, 1, wire.TRANSACTION_STATE_EMPTY),
        ]
        await joint.end(end_of(version=2, result=ABORT, end_id="second"))
        (idle,) = await joint.listed(LIST(transactional_id_pattern="joint"))
        assert idle.state == wire.TRANSACTION_STATE_PREPARE_COMMIT
        coordinator.machine.markers.complete_txn([], now_ms=0)
        assert (await joint.described()).joint.open_version == -1


async def test_an_id_without_writers_is_listed(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        joint = Joint(coordinator)
        await joint.end(end_of())
        (listed,) = await joint.listed()
        assert listed.state == wire.TRANSACTION_STATE_EMPTY


LONG = "x" * 256

BAD_FORM: list[tuple[Message, str]] = [
    (wire.JoinTxnRequest(writer="w"), "transactional_id is empty"),
    (wire.JoinTxnRequest(transaction=named(-1), writer="w"), "txn_version is -1"),
    (wire.JoinTxnRequest(transaction=named(run=""), writer="w"), "transaction.run is empty"),
    (wire.JoinTxnRequest(transaction=named(run=LONG), writer="w"), "has 256 characters"),
    (wire.JoinTxnRequest(transaction=named()), "writer is empty"),
    (wire.JoinTxnRequest(transaction=named(), writer="w"), "transaction_timeout_ms is 0"),
    (end_of(end_id=""), "end_id is empty"),
    (end_of(result=participants.TRANSACTION_RESULT_UNSPECIFIED), "result has the unknown"),
    (end_of(wire.JointWriter()), r"writers\[0\].producer_id is 0"),
    (end_of(wire.JointWriter(producer_id=1, producer_epoch=-1)), r"writers\[0\].producer_epoch"),
    (end_of(*[wire.JointWriter(producer_id=1)] * 2), r"writers\[1\] is named twice"),
    (end_of(*[wire.JointWriter(producer_id=1)] * 3), "writers has 3 entries: must be 0 to 2"),
]


@pytest.mark.parametrize(("request_", "message"), BAD_FORM)
async def test_every_field_is_checked(cluster: Cluster, request_: Message, message: str) -> None:
    limits = TransactionLimits(joint_writers_max=2)
    async with cluster.coordinator(send=False, limits=limits) as coordinator:
        with pytest.raises(InvalidRequestError, match=message):
            await Joint(coordinator).ask(request_)


async def test_a_writer_has_a_limited_number_of_participants(cluster: Cluster) -> None:
    limits = TransactionLimits(participants_max=1)
    async with cluster.coordinator(send=False, limits=limits) as coordinator:
        joint = Joint(coordinator)
        writer = await joint.join(join_of("a"))
        with pytest.raises(InvalidRequestError, match=r"writers\[0\].participants has 2 entries"):
            await joint.end(end_of(wrote(writer, A0, A1)))


async def test_nothing_is_answered_before_partitions_are_claimed(cluster: Cluster) -> None:
    async with cluster.coordinator(claim=False, send=False) as coordinator:
        joint = Joint(coordinator)
        for asked in (joint.join(join_of("a")), joint.keep_alive(), joint.end(end_of())):
            with pytest.raises(CoordinatorLoadInProgressError):
                await asked
