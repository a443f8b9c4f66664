"""The link to the controller, over a network in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest
from cluster_harness import image, listener
from google.protobuf.message import Message

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.errors import CoordinatorNotAvailableError, SemelError, StaleClaimEpochError
from semel_common.wire.methods import METADATA, REGISTER_INSTANCE
from semel_runtime.claims import ClaimHistory, JournalClaim, JournalMark
from semel_runtime.cluster.controller_link import ClusterLink, Identity, LinkOptions
from semel_runtime.cluster.controller_note import ControllerMemory, mark_from_wire
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage, ServiceRole
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.testing.controller import ScriptedController
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.network import AnyMethod, Decide, Fault, MemoryNetwork
from semel_runtime.testing.virtual_time import after, in_virtual_time
from semel_runtime.testing.volume import MemoryVolume

CONTROLLER = "controller:1"


MARK = JournalMark(claim_epoch=2, claim_token="token", end_offset=7)
HISTORY = ClaimHistory(
    claims=(
        JournalClaim(claim_epoch=1, claim_token="first", start_offset=0),
        JournalClaim(claim_epoch=2, claim_token="token", start_offset=5),
    ),
    recovered_epoch=1,
)


def mark_of_controller(claim_epoch: int, end_offset: int = 0) -> JournalMark:
    """Return a mark of the controller's journal; each claim has a token of its own."""
    return JournalMark(
        claim_epoch=claim_epoch, claim_token=f"controller {claim_epoch}", end_offset=end_offset
    )


class Follower:
    """An instance with a link."""

    def __init__(
        self, network: MemoryNetwork, volume: MemoryVolume | None = None, *, interval_ms: int = 1
    ) -> None:
        self.volume = volume or MemoryVolume()
        self.journal = MemoryJournal(self.volume, disk_reserve_bytes=1_000)
        self.copy = ClusterCopy()
        self.images: list[ClusterImage] = []
        self.arrived = asyncio.Event()
        self.link = ClusterLink(
            Identity(
                role=ServiceRole.BROKER,
                instance_id=4,
                claim_epoch=2,
                claim_token="token",
                history=HISTORY,
                mark=lambda: MARK,
                listeners=(listener(9),),
                shortage=self.journal.shortage,
            ),
            memory=ControllerMemory(self.journal),
            controller=CONTROLLER,
            connector=network,
            random=Random(1),
            options=LinkOptions(registration_interval_ms=interval_ms),
            cluster_id=lambda: self.images[-1].cluster_id if self.images else "",
            on_image=self._take,
        )

    async def _take(self, taken: ClusterImage) -> None:
        for record in self.copy.update(taken).records:
            self.copy.replay(0, record)
        self.images.append(taken)
        self.arrived.set()

    async def run(self) -> None:
        """Claim the journal, and run the link."""
        await self.journal.claim("token")
        await self.link.run()

    async def until(self, version: int) -> None:
        """Wait until a version has come."""
        while not self.images or self.images[-1].version < version:
            self.arrived.clear()
            await self.arrived.wait()


@asynccontextmanager
async def linked(
    network: MemoryNetwork, volume: MemoryVolume | None = None, *, interval_ms: int = 1
) -> AsyncIterator[Follower]:
    """Run a follower's link."""
    follower = Follower(network, volume, interval_ms=interval_ms)
    task = asyncio.create_task(follower.run())
    try:
        yield follower
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await network.close()


async def test_an_instance_registers_and_then_follows_every_version() -> None:
    network, controller = MemoryNetwork(), ScriptedController(image(1))
    network.serve(CONTROLLER, controller.handlers)
    async with linked(network) as follower:
        await follower.link.ready.wait()
        controller.publish(image(2, topics=2))
        await follower.until(2)
        assert [each.version for each in follower.images] == [1, 2]
        first = controller.registrations[0]
        assert (first.instance_id, first.claim_epoch, first.cluster_id) == (4, 2, "")
        assert first.listeners[0].port == 9


async def test_a_controller_that_comes_late_is_waited_for() -> None:
    network, controller = MemoryNetwork(), ScriptedController(image(1))
    async with linked(network) as follower:
        await asyncio.sleep(0)
        assert not follower.link.ready.is_set()
        network.serve(CONTROLLER, controller.handlers)
        await follower.link.ready.wait()
        assert follower.images == [image(1)]


async def test_registration_goes_on_with_the_cluster_id_that_was_learnt() -> None:
    network, controller = MemoryNetwork(), ScriptedController(image(1))
    network.serve(CONTROLLER, controller.handlers)
    async with linked(network) as follower:
        await follower.link.ready.wait()
        while controller.registrations[-1].cluster_id != "cluster-a":
            controller.registered.clear()
            await controller.registered.wait()


async def test_lost_calls_are_made_again() -> None:
    network, controller = MemoryNetwork(), ScriptedController(image(1))
    network.serve(CONTROLLER, controller.handlers)
    faults = iter([Fault.LOSE_REQUEST, Fault.LOSE_REPLY, Fault.NONE, Fault.LOSE_REPLY])
    network.decide = lambda *_: next(faults, Fault.NONE)
    async with linked(network) as follower:
        await follower.link.ready.wait()
        assert len(controller.registrations) >= 2


@pytest.mark.parametrize("expected", [True, False])
@in_virtual_time
async def test_a_lost_image_is_missed_soon_if_it_is_expected(*, expected: bool) -> None:
    network, controller = MemoryNetwork(), ScriptedController(image(1))
    network.serve(CONTROLLER, controller.handlers)
    network.decide = _drop_images_after(1)
    async with linked(network, interval_ms=3_600_000) as follower:
        await controller.parked.wait()
        controller.publish(image(2))
        if expected:
            follower.link.expect_newer()
        await after(6_000)
        assert follower.images[-1].version == (2 if expected else 1)
        await after(10_000)
        assert follower.images[-1].version == 2


@in_virtual_time
async def test_an_expected_image_that_is_asked_for_later_is_missed_soon() -> None:
    network, controller = MemoryNetwork(), ScriptedController(image(1))
    network.serve(CONTROLLER, controller.handlers)
    network.decide = _drop_images_after(2)
    async with linked(network, interval_ms=3_600_000) as follower:
        await controller.parked.wait()
        follower.link.expect_newer()  # Of a version that comes after the next one.
        controller.publish(image(2))
        await follower.until(2)
        controller.publish(image(3))
        await after(6_000)
        assert follower.images[-1].version == 3


@in_virtual_time
async def test_an_expected_image_that_takes_long_is_waited_for_in_the_end() -> None:
    network, controller = MemoryNetwork(), ScriptedController(image(1))
    slow = Handlers()
    network.serve(CONTROLLER, slow)
    slow.add(REGISTER_INSTANCE, controller._register)

    async def answer(request: wire.MetadataRequest, call: Call) -> wire.MetadataResponse:
        await after(12_000)
        return await controller._metadata(request, call)

    slow.add(METADATA, answer)
    async with linked(network, interval_ms=3_600_000) as follower:
        follower.link.expect_newer()
        await after(30_000)
        assert follower.images == [image(1)]


def _drop_images_after(version: int) -> Decide:
    def decide(_: str, method: AnyMethod, request: Message) -> Fault:
        asked = isinstance(request, wire.MetadataRequest) and request.known_version == version
        return Fault.DROP_REPLY if asked and method.name == METADATA.name else Fault.NONE

    return decide


@pytest.mark.parametrize("cause", [StaleClaimEpochError("claim epoch 2 is not above 3")])
async def test_a_refused_instance_stops(cause: SemelError) -> None:
    network, controller = MemoryNetwork(), ScriptedController(image(1))
    controller.refusal = cause
    network.serve(CONTROLLER, controller.handlers)
    follower = Follower(network)
    with pytest.raises(type(cause), match="claim epoch 2"):
        await follower.link.run()
    await network.close()


async def test_a_controller_that_came_back_with_an_older_volume_is_refused_at_once() -> None:
    network, controller = MemoryNetwork(), ScriptedController(image(5))
    network.serve(CONTROLLER, controller.handlers)
    polls = iter([Fault.NONE, Fault.LOSE_REPLY])
    network.decide = lambda _, method, __: (
        next(polls, Fault.NONE) if method.name == METADATA.name else Fault.NONE
    )
    follower = Follower(network)
    running = asyncio.create_task(follower.link.run())
    await controller.parked.wait()

    network.serve(CONTROLLER, ScriptedController(image(1)).handlers)
    controller.publish(image(6))

    with pytest.raises(ExceptionGroup) as caught:
        await running
    assert caught.group_contains(StaleClaimEpochError, match="has version 1 .* but version 5")
    assert follower.images == [image(5)]
    await network.close()


# -- the disk ------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_disk_that_changes_is_registered_at_once() -> None:
    network, controller = MemoryNetwork(), ScriptedController(image(1))
    network.serve(CONTROLLER, controller.handlers)
    async with linked(network, interval_ms=60_000) as follower:
        await follower.link.ready.wait()
        for free_bytes in (900, 2_000):
            follower.volume.free_bytes = free_bytes
            await after(1_000)
    first, short, over = controller.registrations
    assert not first.HasField("disk_shortage")
    assert short.disk_shortage == wire.DiskShortage(
        folder="/memory", free_bytes=900, reserve_bytes=1_000
    )
    assert not over.HasField("disk_shortage")


# -- the controller's journal --------------------------------------------------------------------


async def test_the_claims_are_shown_until_a_registration_is_taken() -> None:
    network, controller = MemoryNetwork(), ScriptedController(image(1))
    network.serve(CONTROLLER, controller.handlers)
    faults = iter([Fault.LOSE_REPLY])
    network.decide = lambda *_: next(faults, Fault.NONE)
    async with linked(network) as follower:
        await follower.link.ready.wait()
        while len(controller.registrations) < 3:
            controller.registered.clear()
            await controller.registered.wait()
    first, second, third = controller.registrations[:3]
    assert (first.journal_end_offset, first.recovered_epoch) == (7, 1)
    assert [claim.start_offset for claim in first.claims] == [0, 5]
    assert len(second.claims) == 2
    assert not third.claims


async def test_what_the_controller_tells_of_its_journal_outlives_the_instance() -> None:
    network, controller, volume = MemoryNetwork(), ScriptedController(image(1)), MemoryVolume()
    controller.mark = mark_of_controller(3, end_offset=9)
    network.serve(CONTROLLER, controller.handlers)
    async with linked(network, volume) as follower:
        await follower.link.ready.wait()
    async with linked(network, volume) as follower:
        await follower.link.ready.wait()
        assert follower.link.controller == controller.mark
    registrations = controller.registrations
    assert not registrations[0].HasField("controller")
    assert mark_from_wire(registrations[-1].controller) == controller.mark


async def test_metadata_of_another_controller_are_taken_after_a_registration_with_it() -> None:
    network, controller = MemoryNetwork(), ScriptedController(image(1))
    controller.mark = mark_of_controller(3)
    network.serve(CONTROLLER, controller.handlers)
    async with linked(network, interval_ms=3_600_000) as follower:
        await follower.link.ready.wait()
        assert len(controller.registrations) == 1
        controller.mark = mark_of_controller(4)
        controller.publish(image(2))
        await follower.until(2)
    assert len(controller.registrations) == 2
    assert controller.registrations[1].claims
    assert controller.registrations[1].controller.claim_epoch == 3


async def test_metadata_of_a_controller_that_refuses_the_registration_are_not_taken() -> None:
    network, controller = MemoryNetwork(), ScriptedController(image(1))
    controller.mark = mark_of_controller(3)
    network.serve(CONTROLLER, controller.handlers)
    async with linked(network, interval_ms=3_600_000) as follower:
        await follower.link.ready.wait()
        controller.mark = mark_of_controller(4)
        controller.refusal = CoordinatorNotAvailableError("its volume is an older copy")
        controller.publish(image(2))
        while len(controller.registrations) < 4:
            controller.registered.clear()
            await controller.registered.wait()
        assert follower.images == [image(1)]
