"""The controller on an older copy of its volume: what others know of it stops it."""

import asyncio
from contextlib import suppress
from copy import deepcopy

import pytest
from coordinator_harness import Coordinators, registration

from semel.coordinator.v1 import cluster_pb2 as wire
from semel.coordinator.v1.transactions_pb2 import InitProducerIdRequest
from semel_common.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    InconsistentClusterIdError,
    StaleClaimEpochError,
)
from semel_common.wire.methods import CREATE_TOPICS, INIT_PRODUCER_ID, METADATA, REGISTER_INSTANCE

ORDERS = wire.CreateTopicsRequest(topics=[wire.NewTopic(name="orders", partitions=1)])
INIT = InitProducerIdRequest(instance_id="i", init_number=1)


def known_registration(
    broker_id: int, cluster_id: str, mark: wire.JournalMark
) -> wire.RegisterInstanceRequest:
    """Return the registration of a broker that knows the controller's journal."""
    request = registration(broker_id)
    request.cluster_id = cluster_id
    request.controller.CopyFrom(mark)
    return request


async def given_out(coordinators: Coordinators) -> int:
    """Ask for a producer id until the controller gives one out."""
    while True:
        with suppress(CoordinatorLoadInProgressError):
            return (await coordinators.ask(INIT_PRODUCER_ID, INIT)).producer_id
        await asyncio.sleep(0)


@pytest.fixture
def coordinators() -> Coordinators:
    return Coordinators()


async def test_the_controller_tells_services_how_far_its_journal_goes(
    coordinators: Coordinators,
) -> None:
    async with coordinators.running(0):
        first = (await coordinators.register_broker(0)).controller
        await coordinators.ask(CREATE_TOPICS, ORDERS)
        second = (await coordinators.register_broker(0)).controller
        request = wire.MetadataRequest(all_topics=True, all_listeners=True)
        metadata = await coordinators.ask(METADATA, request)
        assert not (await coordinators.metadata()).HasField("controller")
    assert (first.claim_epoch, first.claim_token) == (second.claim_epoch, second.claim_token)
    assert second.end_offset > first.end_offset
    assert metadata.controller.claim_token == second.claim_token
    assert metadata.controller.end_offset >= second.end_offset  # the end of the audit note is lazy


async def test_a_new_cluster_gives_out_ids_at_once(coordinators: Coordinators) -> None:
    async with coordinators.running(0) as app:
        await app.ready.wait()
        await coordinators.ask(INIT_PRODUCER_ID, INIT)


async def test_a_controller_that_starts_waits_for_the_instances_that_it_knows(
    coordinators: Coordinators,
) -> None:
    async with coordinators.running(0):
        for broker_id in range(2):
            await coordinators.register_broker(broker_id)
    async with coordinators.running(0):
        for method, request in ((INIT_PRODUCER_ID, INIT), (CREATE_TOPICS, ORDERS)):
            with pytest.raises(CoordinatorLoadInProgressError):
                await coordinators.ask(method, request)
        await coordinators.register_broker(0)
        with pytest.raises(CoordinatorLoadInProgressError):
            await coordinators.ask(INIT_PRODUCER_ID, INIT)
        await coordinators.register_broker(1)
        await given_out(coordinators)
        await coordinators.ask(CREATE_TOPICS, ORDERS)


async def test_an_instance_that_does_not_come_is_waited_for_a_while(
    coordinators: Coordinators,
) -> None:
    async with coordinators.running(0):
        for broker_id in range(2):
            await coordinators.register_broker(broker_id)
    async with coordinators.running(0, controller_others_wait_ms=0):
        await coordinators.register_broker(0)
        await given_out(coordinators)


@pytest.mark.parametrize("restarts", [0, 3])
async def test_an_older_copy_of_the_controllers_volume_stops(
    coordinators: Coordinators, restarts: int
) -> None:
    async with coordinators.running(0):
        cluster_id = (await coordinators.register_broker(0)).cluster_id
        copy = deepcopy(coordinators.volumes[0].content)
        await coordinators.ask(CREATE_TOPICS, ORDERS)
        mark = (await coordinators.register_broker(0)).controller
    coordinators.volumes[0].content = copy
    for _ in range(restarts):
        async with coordinators.running(0, controller_others_wait_ms=0) as app:
            await app.ready.wait()
    async with coordinators.build(0) as app:
        coordinators.network.serve("coordinator-0:1", app.handlers)
        running = asyncio.create_task(app.run())
        with pytest.raises(CoordinatorNotAvailableError, match="broker 0 knows more"):
            await coordinators.ask(REGISTER_INSTANCE, known_registration(0, cluster_id, mark))
        with pytest.RaisesGroup(
            pytest.RaisesExc(StaleClaimEpochError, match="semel recover"), flatten_subgroups=True
        ) as caught:
            await running
        (refusal,) = leaves(caught.value)
        assert isinstance(refusal, StaleClaimEpochError)
        assert "claim_epoch" in refusal.details
        with pytest.raises(CoordinatorLoadInProgressError):
            await coordinators.ask(INIT_PRODUCER_ID, INIT)


@pytest.mark.parametrize(("broker_id", "claim_token"), [(0, "made up"), (1, "a process")])
async def test_a_caller_that_no_volume_knows_stops_nothing(
    coordinators: Coordinators, broker_id: int, claim_token: str
) -> None:
    mark = wire.JournalMark(claim_epoch=99, claim_token="x", end_offset=99)
    async with coordinators.running(0):
        await coordinators.register_broker(0)
    async with coordinators.running(0):
        cluster_id = (await coordinators.register_broker(0)).cluster_id
        await given_out(coordinators)
        forged = known_registration(broker_id, cluster_id, mark)
        forged.claim_epoch, forged.claim_token = 2, claim_token
        for _ in range(2):
            with pytest.raises(StaleClaimEpochError, match="knows more of the journal") as refused:
                await coordinators.ask(REGISTER_INSTANCE, forged)
            assert "claim_epoch" not in refused.value.details, "it would refuse its own volume"
        await coordinators.ask(INIT_PRODUCER_ID, INIT)


async def test_a_copy_from_before_the_first_instance_registers_none_that_knows_more(
    coordinators: Coordinators,
) -> None:
    async with coordinators.running(0) as app:
        await app.ready.wait()
        copy = deepcopy(coordinators.volumes[0].content)
        cluster_id = (await coordinators.register_broker(0)).cluster_id
        await given_out(coordinators)
        mark = (await coordinators.register_broker(0)).controller
    coordinators.volumes[0].content = copy
    async with coordinators.running(0) as app:
        await app.ready.wait()
        with pytest.raises(StaleClaimEpochError, match="broker 0 knows more"):
            await coordinators.ask(REGISTER_INSTANCE, known_registration(0, cluster_id, mark))
        known = (await coordinators.ask(METADATA, wire.MetadataRequest())).instances
        assert wire.SERVICE_ROLE_BROKER not in [instance.role for instance in known]


async def test_notes_of_another_cluster_stop_nothing(coordinators: Coordinators) -> None:
    mark = wire.JournalMark(claim_epoch=99, claim_token="x", end_offset=99)
    async with coordinators.running(0) as app:
        await app.ready.wait()
        with pytest.raises(InconsistentClusterIdError):
            await coordinators.ask(REGISTER_INSTANCE, known_registration(0, "another", mark))
        await coordinators.ask(INIT_PRODUCER_ID, INIT)


def leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    """Return the exceptions in a group and its groups."""
    found: list[BaseException] = []
    for exception in group.exceptions:
        found += leaves(exception) if isinstance(exception, BaseExceptionGroup) else [exception]
    return found
