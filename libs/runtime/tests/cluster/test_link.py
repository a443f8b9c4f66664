"""The link to the controller, over a network in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest
from cluster_harness import image, listener

from semel_common.errors import SemelError, StaleClaimEpochError
from semel_common.wire.methods import METADATA
from semel_runtime.cluster.copy import ClusterCopy
from semel_runtime.cluster.image import ClusterImage, ServiceRole
from semel_runtime.cluster.link import ClusterLink, Identity, LinkOptions
from semel_runtime.testing.controller import ScriptedController
from semel_runtime.testing.network import Fault, MemoryNetwork

CONTROLLER = "controller:1"


class Follower:
    """An instance with a link."""

    def __init__(self, network: MemoryNetwork) -> None:
        self.copy = ClusterCopy()
        self.images: list[ClusterImage] = []
        self.arrived = asyncio.Event()
        self.link = ClusterLink(
            Identity(
                role=ServiceRole.BROKER,
                instance_id=4,
                claim_epoch=2,
                claim_token="token",
                listeners=(listener(9),),
            ),
            controller=CONTROLLER,
            connector=network,
            random=Random(1),
            options=LinkOptions(registration_interval_ms=1),
            cluster_id=lambda: self.images[-1].cluster_id if self.images else "",
            on_image=self._take,
        )

    async def _take(self, taken: ClusterImage) -> None:
        for record in self.copy.update(taken).records:
            self.copy.replay(0, record)
        self.images.append(taken)
        self.arrived.set()

    async def until(self, version: int) -> None:
        """Wait until a version has come."""
        while not self.images or self.images[-1].version < version:
            self.arrived.clear()
            await self.arrived.wait()


@asynccontextmanager
async def linked(network: MemoryNetwork) -> AsyncIterator[Follower]:
    """Run a follower's link."""
    follower = Follower(network)
    task = asyncio.create_task(follower.link.run())
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
