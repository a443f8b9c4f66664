"""Brokers that have registered, with ten partitions each; all but one of them are made up."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from bench.growth.curve import Curve, Point, Reading
from bench.growth.operations import Operations
from bench.growth.stage import Stage, stage
from bench.topics import fresh_topic
from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.wire.connection import Connection
from semel_common.wire.grpc_connection import GrpcConnector
from semel_common.wire.methods import REGISTER_INSTANCE

PARTITIONS_EACH = 10
CHANGES = 10
REGISTRATIONS = 200
_FIRST_PORT = 1_024


async def registered(sizes: Sequence[float], folder: Path) -> AsyncIterator[Point]:
    """Let brokers register, and use the one that is there."""
    connector = GrpcConnector()
    async with stage(folder) as here:
        controller = connector.connect(here.cluster.bootstrap)
        operations = await Operations.on(here, await fresh_topic(here.client, 1))
        known = 1
        for size in sizes:
            for number in range(known, int(size)):
                await _register(controller, number)
                await fresh_topic(here.client, PARTITIONS_EACH)
            known = int(size)
            readings = [
                *await operations.readings(),
                *await _metadata(here, controller),
                *await here.probe.restart("broker-0"),
            ]
            yield Point(size=size, readings=tuple(readings))
    await connector.close()


async def _metadata(here: Stage, controller: Connection) -> list[Reading]:
    admin = here.client.admin()

    async def again() -> None:
        await _register(controller, 1)

    async def topic_there_and_gone() -> None:
        await admin.delete_topic(await fresh_topic(here.client, 1))

    return [
        *await here.probe.cost("registration", again, REGISTRATIONS),
        *await here.probe.cost("create and delete a topic", topic_there_and_gone, CHANGES),
    ]


async def _register(controller: Connection, number: int) -> None:
    address = wire.AdvertisedListener(name="default", host="127.0.0.1", port=_FIRST_PORT + number)
    request = wire.RegisterInstanceRequest(
        role=wire.SERVICE_ROLE_BROKER,
        instance_id=number,
        claim_epoch=1,
        claim_token=str(number),
        listeners=[address],
    )
    await controller.call(REGISTER_INSTANCE, request, timeout_ms=10_000)


REGISTERED = Curve(
    name="registered",
    axis="registered brokers",
    sizes=(10, 100, 1_000),
    measure=registered,
    why="A record's way touches no other brokers. Among a thousand, all figures were one and a "
    "half to two times as high in this run, also the client's, which knows no more of them: the "
    "machine had become slower, or its caches fuller. A change of the metadata is proportional: "
    "the controller writes the whole image for each instance that follows it, and each of them "
    "reads it and puts it into its journal; so is the start of a service, which reads the "
    "images since its last snapshot. A broker that registers again changes nothing.",
)
