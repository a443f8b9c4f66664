"""The fan-out at work: over a network in memory, to participants that fail as a test says."""

import asyncio

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs
from transactions_harness import A0, A1, B0, GROUP, after, image
from transactions_service_harness import (
    BROKER_0,
    CONTROLLER,
    GROUPS,
    TRACEPARENT,
    Cluster,
    FakeParticipant,
    until,
)

from semel.common.v1 import participants_pb2
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import (
    InvalidRequestError,
    NotLeaderOrFollowerError,
    TransactionCoordinatorFencedError,
    UnknownTopicIdError,
)
from semel_common.ids import Participant, TopicPartition
from semel_common.wire.methods import BROKER_WRITE_TXN_MARKERS, GROUP_WRITE_TXN_MARKERS
from semel_coordinator.transactions.machine import TransactionState
from semel_runtime.cluster.metadata_image import PartitionLeader
from semel_runtime.testing.network import Fault

UNKNOWN = TopicPartition("topic-c", 0)


async def test_each_instance_is_told_about_its_participants(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0, B0, A1, GROUP)
        await until(lambda: coordinator.machine.markers.is_complete(key))
        assert cluster.broker_0.told == ["0 commit topic-a/0+topic-b/0"]
        assert cluster.broker_1.told == ["0 commit topic-a/1"]
        assert cluster.groups.told == ["0 commit group-g"]
        (request,) = cluster.groups.requests
        (marker,) = request.markers
        assert request.cluster_id == "test-cluster"
        assert (marker.producer_id, marker.producer_epoch) == key
        assert (marker.coordinator_epoch, marker.traceparent) == (1, TRACEPARENT)


async def test_brokers_and_group_coordinators_are_asked_by_their_own_streams(
    cluster: Cluster,
) -> None:
    methods: list[object] = []

    def note(_address: str, method: object, _request: object) -> Fault:
        methods.append(method)
        return Fault.NONE

    cluster.network.decide = note
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0, GROUP)
        await until(lambda: coordinator.machine.markers.is_complete(key))
    assert methods == [BROKER_WRITE_TXN_MARKERS, GROUP_WRITE_TXN_MARKERS]


async def test_no_marker_leaves_before_its_decision_is_durable(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        cluster.volume.hold()
        ending = asyncio.create_task(coordinator.end(key, A0))
        for _ in range(20):
            await asyncio.sleep(0)
        assert cluster.broker_0.requests == []
        cluster.volume.release()
        assert await ending == after(key)
        await until(lambda: cluster.broker_0.requests)


async def test_markers_of_many_transactions_share_a_request(cluster: Cluster) -> None:
    """C-066, with one request in flight to an instance."""
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        cluster.broker_0.open.clear()
        for _ in range(4):
            key = await coordinator.end(key, A0)
        await until(lambda: cluster.broker_0.requests)
        cluster.broker_0.open.set()
        await until(lambda: coordinator.machine.markers.is_complete_below(*key))
        assert [len(request.markers) for request in cluster.broker_0.requests] == [1, 3]
        assert cluster.broker_0.told == [f"{epoch} commit topic-a/0" for epoch in range(4)]


async def test_a_slow_instance_holds_up_no_other_instance(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        cluster.broker_0.open.clear()
        await coordinator.end(key, A0, A1)
        await coordinator.end(after(key), A1)
        await until(lambda: coordinator.machine.markers.is_complete(after(key)))
        assert not coordinator.machine.markers.is_complete(key)
        assert coordinator.markers.missing(key) == {A0}


@pytest.mark.parametrize("fault", [Fault.LOSE_REQUEST, Fault.LOSE_REPLY])
async def test_a_lost_call_is_made_again(cluster: Cluster, fault: Fault) -> None:
    """C-122: participants take repeats."""
    faults = [fault, fault]
    cluster.network.decide = lambda *_: faults.pop() if faults else Fault.NONE
    with capture_logs() as logs:
        async with cluster.coordinator() as coordinator:
            key = await coordinator.init()
            await coordinator.end(key, A0)
            await until(lambda: coordinator.machine.markers.is_complete(key))
    assert [log["log_level"] for log in logs if "not delivered" in log["event"]] == ["warning"]


async def test_only_who_refused_is_asked_again(cluster: Cluster) -> None:
    """C-122, C-126."""
    refusals = [NotLeaderOrFollowerError("not yet")]
    cluster.broker_0.refuse = lambda _, participant: (
        refusals.pop() if refusals and participant == B0 else None
    )
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0, B0)
        await until(lambda: coordinator.machine.markers.is_complete(key))
    assert cluster.broker_0.told == ["0 commit topic-a/0+topic-b/0", "0 commit topic-b/0"]


async def test_a_marker_follows_its_partition_to_the_new_leader(cluster: Cluster) -> None:
    """The old one has handed it over; then the metadata name the new one."""
    cluster.broker_0.refuse = lambda _, participant: (
        NotLeaderOrFollowerError("handed over") if participant == B0 else None
    )
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0, B0)
        await until(lambda: len(cluster.broker_0.requests) > 1)
        assert coordinator.markers.missing(key) == {B0}
        before = image(version=2)
        moved = replace(before.topics[1], partitions=(PartitionLeader(1, 1), PartitionLeader(1, 0)))
        coordinator.cluster.replay(1, replace(before, topics=(before.topics[0], moved)))
        await until(lambda: coordinator.machine.markers.is_complete(key))
    assert cluster.broker_1.told == ["0 commit topic-b/0"]


async def test_an_unexpected_error_is_logged_and_tried_again(cluster: Cluster) -> None:
    refusals = [InvalidRequestError("what is this")]
    cluster.groups.refuse = lambda *_: refusals.pop() if refusals else None
    with capture_logs() as logs:
        async with cluster.coordinator() as coordinator:
            key = await coordinator.init()
            await coordinator.end(key, GROUP)
            await until(lambda: coordinator.machine.markers.is_complete(key))
    assert [log["error"] for log in logs if log["log_level"] == "error"] == ["what is this"]


async def test_an_answer_that_does_not_fit_is_no_answer(cluster: Cluster) -> None:
    cluster.broker_0.forget_results = True
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0)
        await until(lambda: len(cluster.broker_0.requests) > 1)
        assert not coordinator.machine.markers.is_complete(key)
        cluster.broker_0.forget_results = False
        await until(lambda: coordinator.machine.markers.is_complete(key))


async def test_a_marker_that_breaks_an_instance_holds_up_no_other(cluster: Cluster) -> None:
    def break_at(marker: participants_pb2.TxnMarker, _: Participant) -> None:
        assert marker.producer_epoch != 1

    cluster.broker_0.refuse = break_at
    with capture_logs() as logs:
        async with cluster.coordinator(backoff_ms=1) as coordinator:
            key = await coordinator.init()
            cluster.broker_0.open.clear()
            for epoch in range(4):
                await coordinator.end(after(key, epoch), A0 if epoch == 1 else B0)
            cluster.broker_0.open.set()
            await until(lambda: coordinator.machine.markers.is_complete(after(key, 3)))
            assert coordinator.machine.markers.is_complete(after(key, 2))
            assert not coordinator.machine.markers.is_complete(after(key))
            cluster.broker_0.refuse = lambda *_: None
            await until(lambda: coordinator.machine.markers.is_complete_below(*after(key, 4)))
    assert any(log["event"] == "markers rejected, will be sent again" for log in logs)


async def test_a_refusal_for_another_participant_is_no_answer(cluster: Cluster) -> None:
    """A participant may not count as told because a refusal could not be read."""
    strangers = [B0, B0]
    cluster.broker_0.refuse = lambda *_: NotLeaderOrFollowerError("") if strangers else None
    cluster.broker_0.name_instead = lambda _: strangers.pop()
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0, wait=wire.WAIT_FOR_COMPLETE)
    assert len(cluster.broker_0.requests) == 3


async def test_participants_are_told_whether_a_caller_waits(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0)
        await until(lambda: coordinator.machine.markers.is_complete(key))
        await coordinator.end(after(key), A0, wait=wire.WAIT_FOR_COMPLETE)
    assert [request.awaited for request in cluster.broker_0.requests] == [False, True]


async def test_an_instance_that_has_not_registered_is_waited_for(cluster: Cluster) -> None:
    cluster.image = image(registered=False)
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0, GROUP)
        for _ in range(50):
            await asyncio.sleep(0)
        assert not coordinator.machine.markers.is_complete(key)
        coordinator.cluster.replay(1, image(version=2))
        await until(lambda: coordinator.machine.markers.is_complete(key))


async def test_an_instance_that_comes_back_elsewhere_is_found(cluster: Cluster) -> None:
    cluster.network.cut(BROKER_0)
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0)
        for _ in range(50):
            await asyncio.sleep(0)
        cluster.network.serve(BROKER_0, cluster.broker_0.handlers)
        await until(lambda: coordinator.machine.markers.is_complete(key))


async def test_a_deposed_coordinator_stops_for_that_partition(cluster: Cluster) -> None:
    """C-123."""
    cluster.broker_0.refuse = lambda *_: TransactionCoordinatorFencedError("5 is older than 6")
    with capture_logs() as logs:
        async with cluster.coordinator() as coordinator:
            key = await coordinator.init()
            await coordinator.end(key, A0)
            await until(lambda: cluster.broker_0.requests)
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(cluster.broker_0.requests) == 1
            assert not coordinator.machine.markers.is_complete(key)
    assert [log["log_level"] for log in logs if "belongs" not in log].count("error") == 1


async def test_markers_resume_after_a_restart(cluster: Cluster) -> None:
    """C-101, C-117: with nothing but the journal, and a higher coordinator epoch."""
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0)
        await coordinator.end(after(key), A1, commit=False)
        assert coordinator.markers.missing(key) is None
    cluster.broker_0.requests.clear()
    async with cluster.coordinator() as coordinator:
        await until(lambda: coordinator.machine.markers.is_complete_below(*after(key, 2)))
    assert cluster.broker_0.told == ["0 commit topic-a/0"]
    assert cluster.broker_1.told == ["1 abort topic-a/1"]
    assert cluster.broker_0.requests[0].markers[0].coordinator_epoch == 2


async def test_a_completion_that_was_lost_is_found_again(cluster: Cluster) -> None:
    """C-117, C-120: the last acknowledgement came, the process died before it was written."""
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        cluster.broker_0.open.clear()
        await coordinator.end(key, A0)
        await until(lambda: cluster.broker_0.requests)
        cluster.volume.hold()
        cluster.broker_0.open.set()
        await until(lambda: coordinator.machine.markers.is_complete(key))
        cluster.volume.lose_unsynced()
        cluster.volume.release()
        async with asyncio.timeout(50):
            await coordinator.runner.failed.wait()
    async with cluster.coordinator() as coordinator:
        assert not coordinator.machine.markers.is_complete(key)
        await until(lambda: coordinator.machine.markers.is_complete(key))
    assert cluster.broker_0.told == ["0 commit topic-a/0"] * 2


async def test_a_deleted_topic_is_dropped(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0, UNKNOWN)
        await until(lambda: coordinator.machine.markers.is_complete(key))
    assert cluster.controller.asked == [["topic-c"]]
    assert cluster.broker_0.told == ["0 commit topic-a/0"]


async def test_a_topic_that_is_deleted_while_its_broker_is_asked_is_dropped(
    cluster: Cluster,
) -> None:
    cluster.controller.topic_ids.discard("topic-a")
    cluster.broker_0.refuse = lambda *_: UnknownTopicIdError("no such topic")
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0)
        await until(lambda: cluster.broker_0.requests)
        coordinator.cluster.replay(1, image(version=2, topics=["topic-b"]))
        await until(lambda: coordinator.machine.markers.is_complete(key))


async def test_a_topic_that_this_instance_has_not_heard_of_yet_is_not_dropped(
    cluster: Cluster,
) -> None:
    """A client may have learned of a topic, and written to it, before this copy was told."""
    cluster.controller.topic_ids.add("topic-c")
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, UNKNOWN)
        await until(lambda: len(cluster.controller.asked) > 2)
        assert not coordinator.machine.markers.is_complete(key)
        coordinator.cluster.replay(1, image(version=2, topics=["topic-c"]))
        await until(lambda: coordinator.machine.markers.is_complete(key))
    assert cluster.broker_0.told == ["0 commit topic-c/0"]


async def test_a_partition_that_a_topic_does_not_have_is_dropped(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, TopicPartition("topic-a", 7))
        await until(lambda: coordinator.machine.markers.is_complete(key))
    assert cluster.controller.asked == [["topic-a"]]


async def test_without_a_clear_word_of_the_controller_nothing_is_dropped(
    cluster: Cluster,
) -> None:
    cluster.controller.silent_about.add("topic-c")
    cluster.network.cut(CONTROLLER)
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        # More topics than one question may name.
        await coordinator.end(key, UNKNOWN, *(TopicPartition(f"gone-{n}", 0) for n in range(4)))
        for _ in range(50):
            await asyncio.sleep(0)
        cluster.network.serve(CONTROLLER, cluster.controller.handlers)
        await until(lambda: coordinator.markers.missing(key) == {UNKNOWN})
        assert not coordinator.machine.markers.is_complete(key)
        cluster.controller.silent_about.clear()
        await until(lambda: coordinator.machine.markers.is_complete(key))
    assert max(map(len, cluster.controller.asked)) == 2


async def test_a_decision_made_while_the_process_stops_is_for_the_next_start(
    cluster: Cluster,
) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        coordinator.sending.cancel()
        await asyncio.wait([coordinator.sending])
        assert await coordinator.end(key, A0) == after(key)
        assert not coordinator.runner.failed.is_set()
    assert cluster.broker_0.requests == []
    async with cluster.coordinator() as coordinator:
        await until(lambda: coordinator.machine.markers.is_complete(key))


async def test_a_participant_that_appears_later_gets_its_own_task(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0)
        await until(lambda: coordinator.machine.markers.is_complete(key))
        late = FakeParticipant()
        cluster.network.serve(GROUPS, late.handlers)
        await coordinator.end(after(key), GROUP, commit=False)
        await until(lambda: coordinator.machine.markers.is_complete(after(key)))
    assert late.told == ["1 abort group-g"]


async def test_a_pause_ends_by_itself(cluster: Cluster) -> None:
    faults = [Fault.LOSE_REQUEST]
    cluster.network.decide = lambda *_: faults.pop() if faults else Fault.NONE
    async with cluster.coordinator(backoff_ms=1) as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0, wait=wire.WAIT_FOR_COMPLETE)
    assert cluster.broker_0.told == ["0 commit topic-a/0"]


async def test_pauses_are_waited_for_without_polling(cluster: Cluster) -> None:
    """A pause of an hour: what is new for the instance wakes its task, and is held up too."""
    faults = [Fault.LOSE_REQUEST]
    cluster.network.decide = lambda *_: faults.pop() if faults else Fault.NONE
    async with cluster.coordinator(backoff_ms=3_600_000) as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0)
        await until(lambda: not faults)
        await coordinator.end(after(key), A0)
        for _ in range(50):
            await asyncio.sleep(0)
        assert cluster.broker_0.requests == []
        (described,) = coordinator.machine.queries.describe_transactions(["app"]).response
        assert [transaction.state for transaction in described.transactions] == [
            TransactionState.PREPARE_COMMIT,
            TransactionState.PREPARE_COMMIT,
            TransactionState.EMPTY,
        ]
