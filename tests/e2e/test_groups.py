"""Consumer groups from end to end: rebalances that move the fewest partitions, static members."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field

import pytest

from aiosemel import (
    Consumer,
    ConsumerOptions,
    OffsetAndMetadata,
    OffsetReset,
    OffsetSpec,
    SemelClient,
    ShiftBy,
    TopicPartition,
    ToTimestamp,
)
from aiosemel.errors import (
    FencedInstanceIdError,
    GroupIdNotFoundError,
    GroupSubscribedToTopicError,
    NonEmptyGroupError,
    UnknownMemberIdError,
)
from semel_local import LocalCluster

pytestmark = pytest.mark.asyncio(loop_scope="session")

Partitions = frozenset[TopicPartition]


@dataclass
class Reader:
    """A consumer that is polled all the time, with the records and callbacks that it got."""

    consumer: Consumer
    values: list[bytes | None] = field(default_factory=list)
    revoked: list[Partitions] = field(default_factory=list)
    assigned: list[Partitions] = field(default_factory=list)

    @classmethod
    def of(cls, client: SemelClient, group: str, topic: str, **options: str) -> "Reader":
        """Subscribe, and begin to poll."""
        reader = cls(
            client.consumer(
                group,
                options=ConsumerOptions(
                    auto_offset_reset=OffsetReset.EARLIEST,
                    fetch_max_wait_ms=50,
                    group_instance_id=options.get("instance_id", ""),
                    server_assignor=options.get("assignor", ""),
                ),
            )
        )
        reader.consumer.subscribe(
            [topic], on_assigned=reader._on_assigned, on_revoked=reader._on_revoked
        )
        return reader

    async def poll(self) -> None:
        """Poll once."""
        for records in (await self.consumer.poll(timeout_ms=20)).values():
            self.values += [record.value for record in records]

    async def _on_assigned(self, partitions: Partitions) -> None:
        self.assigned.append(partitions)

    async def _on_revoked(self, partitions: Partitions) -> None:
        self.revoked.append(partitions)


async def settle(readers: Collection[Reader], sizes: Collection[int]) -> None:
    """Poll until the readers hold shares of these sizes, in any order."""
    async with asyncio.timeout(30):
        while sorted(len(reader.consumer.assignment()) for reader in readers) != sorted(sizes):
            for reader in readers:
                await reader.poll()


async def send(client: SemelClient, topic: str, value: bytes) -> None:
    """Send a record to every partition."""
    async with client.producer() as producer:
        for partition in range(4):
            await producer.send(topic, value, partition=partition)


async def test_a_rebalance_takes_only_what_moves(
    client: SemelClient, topic: str, name: str
) -> None:
    first = Reader.of(client, name, topic)
    await settle([first], [4])
    second = Reader.of(client, name, topic)
    await settle([first, second], [2, 2])
    assert [len(each) for each in first.revoked] == [2]
    before = {id(each): each.consumer.assignment() for each in (first, second)}
    third = Reader.of(client, name, topic)
    await settle([first, second, third], [1, 1, 2])
    (moved,) = [*first.revoked[1:], *second.revoked]
    assert moved == third.consumer.assignment()
    for each in (first, second):
        assert each.consumer.assignment() == before[id(each)] - moved
    for each in (first, second, third):
        await each.consumer.close()


async def test_a_static_member_that_restarts_moves_no_partition(
    client: SemelClient, topic: str, name: str
) -> None:
    dynamic = Reader.of(client, name, topic)
    static = Reader.of(client, name, topic, instance_id="s")
    await settle([dynamic, static], [2, 2])
    before = static.consumer.assignment()
    told = len(dynamic.assigned), len(dynamic.revoked)
    await static.consumer.close()
    again = Reader.of(client, name, topic, instance_id="s")
    await settle([dynamic, again], [2, 2])
    assert again.consumer.assignment() == before
    assert (len(dynamic.assigned), len(dynamic.revoked)) == told
    await send(client, topic, b"for everyone")
    async with asyncio.timeout(30):
        while len(dynamic.values) + len(again.values) < 4:
            await dynamic.poll()
            await again.poll()
    await again.consumer.close()
    await dynamic.consumer.close()


async def test_a_second_process_with_an_instance_id_fences_the_first(
    client: SemelClient, topic: str, name: str
) -> None:
    first = Reader.of(client, name, topic, instance_id="s")
    await settle([first], [4])
    second = Reader.of(client, name, topic, instance_id="s")
    await settle([second], [4])
    with pytest.raises(UnknownMemberIdError):
        await first.consumer.commit({(topic, 0): 0})
    with pytest.raises(FencedInstanceIdError, match="give each process an instance id of its own"):
        await settle([first], [0])
    await first.consumer.close()
    described = await client.admin().describe_group(name)
    assert [member.group_instance_id for member in described.members] == ["s"]
    assert described.assignor == "uniform"
    await second.consumer.close()


async def test_a_group_with_members_is_not_reset_and_not_deleted(
    client: SemelClient, topic: str, name: str
) -> None:
    admin = client.admin()
    await send(client, topic, b"read")
    reader = Reader.of(client, name, topic)
    await settle([reader], [4])
    with pytest.raises(NonEmptyGroupError):
        await admin.groups.reset_offsets(name, OffsetSpec.EARLIEST, dry_run=True)
    with pytest.raises(NonEmptyGroupError):
        await admin.groups.alter_offsets(name, {(topic, 0): 0})
    with pytest.raises(NonEmptyGroupError):
        await admin.groups.delete(name)
    with pytest.raises(GroupSubscribedToTopicError):
        await admin.groups.delete_offsets(name, [(topic, 0)])
    await reader.consumer.close()
    await admin.groups.delete(name)
    with pytest.raises(GroupIdNotFoundError):
        await admin.groups.delete(name)
    await admin.groups.delete(name, missing_ok=True)


async def test_a_reset_stops_at_the_last_stable_offset(
    client: SemelClient, topic: str, name: str
) -> None:
    """The consumer does not pass over records of an open transaction, which may commit."""
    admin = client.admin()
    await send(client, topic, b"plain")
    async with client.transactional_producer(name) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await (await producer.send(topic, b"open", partition=0))
        for to in (OffsetSpec.LATEST, ToTimestamp(1 << 50)):
            changes = await admin.groups.reset_offsets(
                name, to, partitions=[(topic, 0)], dry_run=True
            )
            assert [(each.before, each.after) for each in changes] == [(None, 1)]
        await producer.abort()
    await admin.groups.alter_offsets(name, {(topic, 0): 1})
    (change,) = await admin.groups.reset_offsets(name, ShiftBy(-1))
    assert (change.before, change.after) == (1, 0)
    found = await admin.list_consumer_group_offsets(name, [(topic, 0)])
    assert [each.offset for each in found.values() if each] == [0]


async def test_the_lag_counts_records_that_a_reader_will_see(
    client: SemelClient, topic: str, name: str
) -> None:
    admin = client.admin()
    places = [(topic, partition) for partition in range(4)]
    async with client.transactional_producer(name) as producer:
        await producer.init_transactions()
        for kept in (True, False, True):
            await producer.begin_transaction()
            for place in places:
                await producer.send(*place[:1], b"value", partition=place[1])
            await (producer.commit() if kept else producer.abort())
    counts: dict[TopicPartition, int] = {}
    async with asyncio.timeout(30):  # the last markers are on their way
        while sum(counts.values()) < 2 * len(places):
            counts = await admin.count_records(dict.fromkeys(places, 0))
    assert counts == {TopicPartition(*place): 2 for place in places}
    ends = await admin.list_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
    past = {place: at.offset for place, at in ends.items() if at}
    assert set((await admin.count_records(past)).values()) == {0}


async def test_a_client_that_is_closed_lets_a_consumer_end_its_transaction(
    cluster: LocalCluster, client: SemelClient, topic: str, name: str
) -> None:
    """Whichever was made first: the callback finds its producer open."""
    await client.producer().send_and_wait(topic, b"v", partition=0)
    async with cluster.client() as closing:
        reader = Reader.of(closing, name, topic)
        producer = closing.transactional_producer(name)
        await producer.init_transactions()
        await producer.begin_transaction()

        async def end(_: Partitions) -> None:
            metadata = reader.consumer.group_metadata()
            await producer.send_offsets(reader.consumer.positions(), metadata)
            await producer.commit()

        reader.consumer.subscribe([topic], on_revoked=end)
        while not reader.values:
            await reader.poll()
    committed = await client.admin().list_consumer_group_offsets(name, [(topic, 0)])
    assert committed == {TopicPartition(topic, 0): OffsetAndMetadata(1)}
