"""Coordinators as a whole: starts, restarts, and two of them in one cluster."""

import asyncio

import pytest
from coordinator_harness import Coordinators

from semel.coordinator.v1 import cluster_pb2 as wire
from semel.coordinator.v1 import transactions_pb2
from semel_common.errors import (
    CoordinatorNotAvailableError,
    InconsistentClusterIdError,
    InvalidConfigError,
    KafkaStorageError,
    NetworkExceptionError,
    StaleClaimEpochError,
)
from semel_common.wire.methods import (
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_CLUSTER,
    FIND_COORDINATOR,
    METADATA,
)
from semel_runtime.testing.volume import MemoryVolume

ORDERS = wire.CreateTopicsRequest(topics=[wire.NewTopic(name="orders", partitions=2)])


@pytest.fixture
def coordinators() -> Coordinators:
    return Coordinators()


async def test_every_declared_call_has_a_handler(coordinators: Coordinators) -> None:
    declared = {
        f"/{service.full_name}/{method.name}"
        for file in (wire.DESCRIPTOR, transactions_pb2.DESCRIPTOR)
        for service in file.services_by_name.values()
        for method in service.methods
        if not method.client_streaming
    }
    async with coordinators.running(0) as app:
        assert {endpoint.method.path for endpoint in app.handlers} == declared


# -- the controller ----------------------------------------------------------------------------


async def test_the_first_start_makes_a_cluster(coordinators: Coordinators) -> None:
    async with coordinators.running(0) as app:
        await app.ready.wait()
        metadata = await coordinators.metadata()
    assert len(metadata.cluster_id) == 22
    assert metadata.layout == wire.ClusterLayout(
        transaction_log_partitions=50, coordinators=2, group_partitions=50, group_coordinators=1
    )
    assert coordinators.volumes[0].content.cluster_id == metadata.cluster_id


async def test_a_restart_knows_everything_again(coordinators: Coordinators) -> None:
    async with coordinators.running(0):
        await coordinators.register_broker(0)
        await coordinators.ask(CREATE_TOPICS, ORDERS)
        before = await coordinators.metadata()
    async with coordinators.running(0):
        assert await coordinators.metadata() == before
        described = await coordinators.ask(DESCRIBE_CLUSTER, wire.DescribeClusterRequest())
    assert [instance.claim_epoch for instance in described.instances] == [2, 1]
    assert described.instances[0].last_registered_ms == coordinators.clock.now_ms()
    assert described.instances[1].last_registered_ms == 0


async def test_another_layout_is_refused_at_the_start(coordinators: Coordinators) -> None:
    async with coordinators.running(0):
        pass
    with pytest.raises(InvalidConfigError, match=r"group_coordinators is 3, but .* set it to 1"):
        async with coordinators.running(0, group_coordinators=3):
            pass


async def test_a_refused_start_leaves_the_volume_as_it_was(coordinators: Coordinators) -> None:
    async with coordinators.running(0):
        before = await coordinators.metadata()
    with pytest.raises(InvalidConfigError):
        async with coordinators.running(0, coordinators=3):
            pass
    async with coordinators.running(0):
        assert await coordinators.metadata() == before


async def test_the_controller_registers_again_from_time_to_time(
    coordinators: Coordinators,
) -> None:
    async with coordinators.running(0, registration_interval_ms=0):
        coordinators.clock.advance(5_000)
        await coordinators.metadata()
        described = await coordinators.ask(DESCRIBE_CLUSTER, wire.DescribeClusterRequest())
        assert described.instances[0].last_registered_ms == coordinators.clock.now_ms()


async def test_a_failed_journal_ends_the_process(coordinators: Coordinators) -> None:
    async with coordinators.running(0, registration_interval_ms=0) as app:
        await app.ready.wait()
        coordinators.volumes[0].fail_next_write(applied=False)
        with pytest.raises(KafkaStorageError):
            await coordinators.register_broker(0)
        with pytest.raises(KafkaStorageError):
            await coordinators.metadata()
        assert app.failed.is_set()


async def test_parked_calls_are_answered_when_the_process_is_about_to_stop(
    coordinators: Coordinators,
) -> None:
    async with coordinators.running(0) as app, asyncio.TaskGroup() as group:
        known = (await coordinators.metadata()).version
        request = wire.MetadataRequest(known_version=known, max_wait_ms=60_000)
        parked = group.create_task(coordinators.ask(METADATA, request))
        await coordinators.metadata()
        app.drain()
        assert (await parked).version == known
        assert (await coordinators.ask(METADATA, request)).version == known


# -- the others --------------------------------------------------------------------------------


async def test_another_coordinator_answers_from_its_copy(coordinators: Coordinators) -> None:
    async with coordinators.running(0), coordinators.running(1) as other:
        await other.ready.wait()
        await coordinators.register_broker(0)
        known = await coordinators.metadata()
        await caught_up(coordinators, known.version)
        assert await coordinators.metadata(instance_id=1) == known
        assert coordinators.volumes[1].content.cluster_id == known.cluster_id


async def test_a_change_is_passed_on_to_the_controller(coordinators: Coordinators) -> None:
    async with coordinators.running(0), coordinators.running(1) as other:
        await other.ready.wait()
        await coordinators.register_broker(0, asked=1)
        created = await coordinators.ask(CREATE_TOPICS, ORDERS, instance_id=1)
        assert not created.topics[0].HasField("error")
        known = await coordinators.metadata()
        assert [topic.name for topic in known.topics] == ["orders"]
        await caught_up(coordinators, known.version)
        copied = await coordinators.metadata(instance_id=1)
        assert copied.topics == known.topics
        request = wire.DeleteTopicsRequest(topics=["orders"])
        await coordinators.ask(DELETE_TOPICS, request, instance_id=1)
        assert not (await coordinators.metadata()).topics


async def test_what_the_controller_refuses_is_refused_by_all(coordinators: Coordinators) -> None:
    async with coordinators.running(0), coordinators.running(1) as other:
        await other.ready.wait()
        await coordinators.register_broker(0, claim_epoch=2)
        with pytest.raises(StaleClaimEpochError):
            await coordinators.register_broker(0, claim_epoch=1, asked=1)


async def test_without_the_controller_everything_but_changes_goes_on(
    coordinators: Coordinators,
) -> None:
    async with coordinators.running(1) as other:
        async with coordinators.running(0):
            await other.ready.wait()
        keys = [f"id-{i}" for i in range(8)]
        request = wire.FindCoordinatorRequest(type=wire.COORDINATOR_TYPE_TRANSACTION, keys=keys)
        found = await coordinators.ask(FIND_COORDINATOR, request, instance_id=1)
        assert {coordinator.instance.host for coordinator in found.coordinators} == {
            "coordinator-0",
            "coordinator-1",
        }
        with pytest.raises(NetworkExceptionError):
            await coordinators.ask(CREATE_TOPICS, ORDERS, instance_id=1)


async def test_a_copy_outlives_a_restart_without_the_controller(
    coordinators: Coordinators,
) -> None:
    async with coordinators.running(0), coordinators.running(1) as other:
        await other.ready.wait()
        known = await coordinators.metadata(instance_id=1)
    async with coordinators.running(1) as other:
        assert await coordinators.metadata(instance_id=1) == known
        assert not other.ready.is_set()


async def test_before_it_has_heard_from_the_controller_a_coordinator_knows_nothing(
    coordinators: Coordinators,
) -> None:
    async with coordinators.running(1):
        with pytest.raises(CoordinatorNotAvailableError):
            await coordinators.metadata(instance_id=1)
        with pytest.raises(CoordinatorNotAvailableError):
            await coordinators.ask(DESCRIBE_CLUSTER, wire.DescribeClusterRequest(), instance_id=1)
        with pytest.raises(CoordinatorNotAvailableError):
            await coordinators.ask(CREATE_TOPICS, ORDERS, instance_id=1)
        request = wire.FindCoordinatorRequest(type=wire.COORDINATOR_TYPE_TRANSACTION, keys=["x"])
        found = await coordinators.ask(FIND_COORDINATOR, request, instance_id=1)
        assert found.coordinators[0].error.message == (
            "this instance has not heard from the controller yet"
        )


async def test_a_coordinator_of_another_cluster_is_refused(coordinators: Coordinators) -> None:
    async with coordinators.running(0), coordinators.running(1) as other:
        await other.ready.wait()
    coordinators.volumes[0] = MemoryVolume()
    async with coordinators.running(0), coordinators.build(1) as other:
        told = "coordinator-0 at .* put back the volume of coordinator-0"
        with pytest.RaisesGroup(pytest.RaisesExc(InconsistentClusterIdError, match=told)):
            await other.run()


# -- the wrong folder --------------------------------------------------------------------------


async def test_the_folder_of_coordinator_0_is_no_other_s(coordinators: Coordinators) -> None:
    async with coordinators.running(0):
        pass
    coordinators.volumes[1] = coordinators.volumes[0]
    with pytest.raises(InvalidConfigError, match="that of coordinator 0, not of coordinator 1"):
        async with coordinators.running(1):
            pass


async def test_the_folder_of_another_is_not_that_of_coordinator_0(
    coordinators: Coordinators,
) -> None:
    async with coordinators.running(0), coordinators.running(1) as other:
        await other.ready.wait()
    coordinators.volumes[0] = coordinators.volumes[1]
    with pytest.raises(InvalidConfigError, match="not that of coordinator 0"):
        async with coordinators.running(0):
            pass


async def caught_up(coordinators: Coordinators, version: int) -> None:
    """Wait until coordinator 1 has copied a version."""
    request = wire.MetadataRequest(known_version=version - 1, max_wait_ms=60_000)
    await coordinators.ask(METADATA, request, instance_id=1)
