"""Partitions move between the processes of a cluster while producers and readers go on."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from aiosemel import (
    ConsumerOptions,
    IsolationLevel,
    MoveAdmin,
    OffsetReset,
    PartitionReassignment,
    SemelClient,
    ServiceRole,
    TopicPartition,
)
from semel_local import ProcessCluster
from semel_local.layout import Role

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

TOPIC = "orders"
PARTITIONS = 4
FIRST = TopicPartition(TOPIC, 0)
READER = ConsumerOptions(
    isolation_level=IsolationLevel.READ_COMMITTED,
    auto_offset_reset=OffsetReset.EARLIEST,
    fetch_max_wait_ms=100,
)


class Traffic:
    """A transactional producer and a reader of its committed records; both run until `stop`."""

    def __init__(self, client: SemelClient) -> None:
        self._client = client
        self._stopped = asyncio.Event()
        self._progressed = asyncio.Event()
        self._all_written = False
        self.committed = 0
        """How many transactions wrote their number to every partition."""
        self.read: defaultdict[int, list[int]] = defaultdict(list)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Traffic"]:
        """Go on meanwhile; at the end, every partition has each number once, in order."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write())
            group.create_task(self._read())
            await self.go_on()
            yield self
            await self.go_on()
            self._stopped.set()
        assert dict(self.read) == {each: [*range(self.committed)] for each in range(PARTITIONS)}

    async def go_on(self, transactions: int = 5) -> None:
        """Wait until so many more are committed and read."""
        wanted = self.committed + transactions
        async with asyncio.timeout(60):
            while self._read_by_all < wanted:
                self._progressed.clear()
                await self._progressed.wait()

    @property
    def _read_by_all(self) -> int:
        return min(len(self.read[each]) for each in range(PARTITIONS))

    async def _write(self) -> None:
        async with self._client.transactional_producer("mover") as producer:
            await producer.init_transactions()
            while not self._stopped.is_set():
                for number, is_kept in ((-1, False), (self.committed, True)):
                    await producer.begin_transaction()
                    for each in range(PARTITIONS):
                        await producer.send(TOPIC, str(number).encode(), partition=each)
                    await (producer.commit() if is_kept else producer.abort())
                self.committed += 1
        self._all_written = True

    async def _read(self) -> None:
        async with self._client.consumer(options=READER) as consumer:
            consumer.assign((TOPIC, each) for each in range(PARTITIONS))
            while not (self._all_written and self._read_by_all >= self.committed):
                for at, records in (await consumer.poll(timeout_ms=200)).items():
                    self.read[at.partition] += [int(record.value or b"") for record in records]
                self._progressed.set()


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster with traffic."""

    cluster: ProcessCluster
    client: SemelClient
    traffic: Traffic

    @property
    def moves(self) -> MoveAdmin:
        return self.client.admin().moves

    async def move_all(self, target: int) -> dict[TopicPartition, int | None]:
        """Begin to move every partition to a broker."""
        everywhere: dict[TopicPartition, int | None] = {
            TopicPartition(TOPIC, each): target for each in range(PARTITIONS)
        }
        await self.moves.alter_partition_reassignments(everywhere)
        return everywhere

    async def moved(self, partitions: Iterable[TopicPartition]) -> list[int]:
        """Wait until the partitions move no more; returns their leaders."""
        async with asyncio.timeout(60):
            return [*(await self.moves.wait_for_reassignments(partitions)).values()]

    async def leaders(self) -> list[int]:
        """Return the leader of each partition, as every coordinator knows it in the end."""
        described = await self.client.admin().describe_topic(TOPIC)
        return [partition.leader_id for partition in described.partitions]


@asynccontextmanager
async def stage_of(folder: Path, brokers: int) -> AsyncIterator[Stage]:
    """Run a cluster with traffic."""
    async with (
        ProcessCluster(folder, brokers=brokers) as cluster,
        SemelClient(cluster.bootstrap) as client,
    ):
        await client.admin().create_topic(TOPIC, partitions=PARTITIONS)
        async with Traffic(client).running() as traffic:
            yield Stage(cluster, client, traffic)


async def test_partitions_move_to_and_fro_under_transactions(tmp_path: Path) -> None:
    async with stage_of(tmp_path, brokers=2) as stage:
        for target in (1, 0, 1):
            assert set(await stage.moved(await stage.move_all(target))) == {target}
            await stage.traffic.go_on()
        assert await stage.leaders() == [1] * PARTITIONS


async def test_a_broker_that_is_added_gets_its_share_and_one_that_goes_is_emptied(
    tmp_path: Path,
) -> None:
    async with stage_of(tmp_path, brokers=1) as stage:
        assert await stage.cluster.add(Role.BROKER) == "broker-1"
        begun = await stage.moves.rebalance_partitions()
        assert await stage.moved(begun) == [1] * (PARTITIONS // 2)
        assert sorted(await stage.leaders()) == [0, 0, 1, 1]
        await stage.traffic.go_on()
        await stage.moves.decommission_instance(ServiceRole.BROKER, 0)
        await stage.moved(await stage.moves.rebalance_partitions())
        assert await stage.moves.decommission_instance(ServiceRole.BROKER, 0) == 0
        await stage.cluster.stop_service("broker-0")
        await stage.traffic.go_on()
        assert await stage.leaders() == [1] * PARTITIONS


async def test_groups_and_transactions_are_shared_out_and_their_coordinators_emptied(
    tmp_path: Path,
) -> None:
    groups = [f"group-{number}" for number in range(8)]
    async with stage_of(tmp_path, brokers=1) as stage:
        admin = stage.client.admin()
        for number, group in enumerate(groups):
            await admin.groups.alter_offsets(group, {FIRST: number})
        for role in (Role.GROUP_COORDINATOR, Role.COORDINATOR):
            assert await stage.cluster.add(role) == f"{role}-1"
        begun = await stage.moves.rebalance_partitions()
        assert {each.target for each in begun.values()} == {"coordinator-1", "group-coordinator-1"}
        assert await stage.moved(begun) == [1] * 50
        await stage.traffic.go_on()
        for gone, number in ((ServiceRole.GROUP_COORDINATOR, 0), (ServiceRole.COORDINATOR, 1)):
            assert await stage.moves.decommission_instance(gone, number) == 25
            await stage.moved(await stage.moves.rebalance_partitions())
            assert await stage.moves.decommission_instance(gone, number) == 0
            await stage.cluster.stop_service(f"{gone}-{number}")
            await stage.traffic.go_on()
        listed = await admin.list_groups()
        assert sorted(entry.group_id for entry in listed) == groups
        for number, group in enumerate(groups):
            kept = await admin.list_consumer_group_offsets(group)
            assert {at: each and each.offset for at, each in kept.items()} == {FIRST: number}
        assert [
            transaction.transactional_id for transaction in await admin.list_transactions()
        ] == ["mover"]


async def test_a_move_to_a_broker_that_is_down_waits_and_can_be_given_up(tmp_path: Path) -> None:
    async with stage_of(tmp_path, brokers=1) as stage:
        await stage.cluster.kill(await stage.cluster.add(Role.BROKER))
        await stage.moves.alter_partition_reassignments({FIRST: 1})
        await stage.traffic.go_on()
        waiting = PartitionReassignment(leader_id=0, moving_to=1)
        assert await stage.moves.list_partition_reassignments() == {FIRST: waiting}
        await stage.moves.alter_partition_reassignments({FIRST: None})
        assert await stage.moves.list_partition_reassignments() == {}
        await stage.cluster.start("broker-1")
        await stage.traffic.go_on()
        assert await stage.leaders() == [0] * PARTITIONS
        await stage.moves.alter_partition_reassignments({FIRST: 1})
        assert await stage.moved([FIRST]) == [1]


async def test_moves_outlive_the_death_of_either_broker(tmp_path: Path) -> None:
    async with stage_of(tmp_path, brokers=2) as stage:
        for target, victim in ((0, "broker-0"), (1, "broker-0"), (0, "broker-1")):
            moving = await stage.move_all(target)
            await stage.cluster.restart(victim)
            assert set(await stage.moved(moving)) == {target}
            await stage.traffic.go_on()
