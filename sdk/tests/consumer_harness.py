"""Consumers of a cluster in memory, and members of a group that note what they are told."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

from fake_cluster import FakeCluster

from aiosemel import ClientOptions, Consumer, ConsumerOptions, TopicPartition
from aiosemel._cluster.routes import Cluster
from aiosemel._shared.change_signal import Signal
from aiosemel._shared.context import Context
from semel.group.v1.group_pb2 import ConsumerGroupHeartbeatRequest

BOOTSTRAP = "coordinator:1"


@dataclass(frozen=True, slots=True)
class FixedClock:
    """Always the same time of day."""

    def now_ms(self) -> int:
        return 1_000


class Client:
    """What makes consumers of a fake cluster, and closes them."""

    def __init__(
        self, fake: FakeCluster, group: asyncio.TaskGroup, seed: int, options: ClientOptions
    ) -> None:
        self._group = group
        self._tasks: list[asyncio.Task[None]] = []
        random = Random(seed)
        self.context = Context(
            cluster=Cluster((BOOTSTRAP,), fake, options, random),
            clock=FixedClock(),
            random=random,
            spawn=self._spawn,
            forget=lambda _: None,
        )
        self.consumers: list[Consumer] = []

    def consumer(self, group_id: str | None = None, **options: object) -> Consumer:
        made = Consumer(self.context, group_id, ConsumerOptions(**options))  # type: ignore[arg-type]  # a test's own
        self.consumers.append(made)
        return made

    async def close(self) -> None:
        for consumer in self.consumers:
            await consumer.close()

    def kill(self) -> None:
        """Stop everything, without a message to the cluster."""
        for task in self._tasks:
            task.cancel()

    def _spawn(self, run: Coroutine[None, None, None], *, name: str) -> asyncio.Task[None]:
        task = self._group.create_task(run, name=name)
        self._tasks.append(task)
        return task


@asynccontextmanager
async def client_of(
    fake: FakeCluster, seed: int = 0, *, options: ClientOptions | None = None
) -> AsyncIterator[Client]:
    """Open a client of a fake cluster, for one block."""
    async with asyncio.TaskGroup() as group:
        client = Client(fake, group, seed, options or ClientOptions())
        try:
            yield client
        finally:
            await client.close()
            client.kill()


async def pass_time(seconds: float) -> None:
    """Let others work for so long, in virtual time."""
    await Signal().wait(seconds * 1000)


@dataclass
class Member:
    """A consumer in the group ``g``, and the calls of its callbacks."""

    consumer: Consumer
    told: list[tuple[str, frozenset[TopicPartition]]] = field(default_factory=list)
    during_revoke: Callable[[], Awaitable[None]] | None = None
    values: list[bytes | None] = field(default_factory=list)

    @classmethod
    def of(cls, client: Client, topics: Sequence[str] = ("orders",), **options: object) -> "Member":
        member = cls(client.consumer("g", auto_offset_reset="earliest", **options))
        member.consumer.subscribe(
            topics,
            on_assigned=member.on_assigned,
            on_revoked=member.on_revoked,
            on_lost=member.on_lost,
        )
        return member

    async def on_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self.told.append(("assigned", partitions))

    async def on_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        assert partitions <= self.consumer.assignment()
        self.told.append(("revoked", partitions))
        if self.during_revoke is not None:
            await self.during_revoke()

    async def on_lost(self, partitions: frozenset[TopicPartition]) -> None:
        self.told.append(("lost", partitions))

    async def poll(self, timeout_ms: int = 500) -> None:
        for records in (await self.consumer.poll(timeout_ms=timeout_ms)).values():
            self.values += [record.value for record in records]

    @property
    def id(self) -> str:
        return self.consumer.group_metadata().member_id


async def settle(*members: Member) -> None:
    """Let them poll until no member has anything to reconcile."""
    for _ in range(8):
        for member in members:
            await member.poll()


def heartbeats(fake: FakeCluster) -> list[ConsumerGroupHeartbeatRequest]:
    found = fake.asked("ConsumerGroupHeartbeat")
    return [each for each in found if isinstance(each, ConsumerGroupHeartbeatRequest)]
