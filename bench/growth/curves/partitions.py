"""Partitions in the cluster, in topics of ten."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from aiosemel import SemelClient, TopicPartition
from bench.growth.curve import Curve, Point, Reading
from bench.growth.operations import Operations, Tail
from bench.growth.stage import Stage, stage
from bench.topics import fresh_topic

IN_TOPIC = 10
LOOKS = 10
POLLS = 100


async def partitions(sizes: Sequence[float], folder: Path) -> AsyncIterator[Point]:
    """Create topics, and use one partition of all."""
    async with stage(folder) as here:
        topic = await fresh_topic(here.client, 1)
        operations = await Operations.on(here, topic)
        others: list[TopicPartition] = []
        for size in sizes:
            while len(others) + 1 < size:
                count = min(IN_TOPIC, int(size) - 1 - len(others))
                name = await fresh_topic(here.client, count)
                others += [TopicPartition(name, index) for index in range(count)]
            readings = [
                *await operations.readings(),
                *await _metadata(here, topic),
                *await _read_all(here, operations, topic, others),
                *await here.probe.restart("broker-0"),
                *await here.probe.restart("coordinator-0"),
            ]
            yield Point(size=size, readings=tuple(readings))


async def _metadata(here: Stage, topic: str) -> list[Reading]:
    """Ask for metadata, and change them."""
    admin = here.client.admin()

    async def topic_there_and_gone() -> None:
        await admin.delete_topic(await fresh_topic(here.client, 1))

    async def new_client() -> None:
        async with SemelClient(here.cluster.bootstrap) as client:
            await client.producer().send_and_wait(topic, b"")

    return [
        *await here.probe.cost("create and delete a topic", topic_there_and_gone, LOOKS),
        *await here.probe.cost("list all topics", admin.list_topics, LOOKS),
        *await here.probe.cost("first record of a new client", new_client, LOOKS),
    ]


async def _read_all(
    here: Stage, operations: Operations, topic: str, others: list[TopicPartition]
) -> list[Reading]:
    """Read all partitions with one consumer; one of them gets records."""
    tails: list[Tail] = []

    async def start() -> None:
        tails.append(await Tail.of(here, operations, topic, others))
        await tails[0].send_and_poll()

    readings = [
        *await here.probe.once("start a consumer of all", start),
        *await here.probe.cost("send and poll, all assigned", tails[0].send_and_poll, POLLS),
        *await here.probe.idle("idle, a consumer of all"),
    ]
    await tails[0].close()
    return readings


PARTITIONS = Curve(
    name="partitions",
    axis="partitions of the cluster",
    sizes=(1, 10, 100, 1_000, 10_000),
    measure=partitions,
    why="The cost of one partition's work is flat, and so are a new topic and a second without "
    "work. Work on all partitions is proportional to them: the list of all topics, and the "
    "start of a consumer of all. A consumer asks for quiet partitions again after each fetch "
    "without an answer, twice a second, and names them all, because there are no fetch sessions "
    "as in KIP-227. It asks for busy partitions apart, so up to about 1,000 a record costs "
    "little more than with one; with 10,000, records wait behind the request for the quiet "
    "ones. Each change of the metadata puts a whole image into every journal, and a start reads "
    "the images since the last snapshot.",
)
