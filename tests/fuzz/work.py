"""The work of two correct clients meanwhile: the fuzzer copies one's requests, not the other's."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiosemel import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    BaseOffsetMismatchError,
    Consumer,
    ConsumerOptions,
    InvalidRequestError,
    OffsetReset,
    ProducerOptions,
    ResourceType,
    SemelClient,
    SemelError,
    ServiceRole,
    TransactionalProducer,
)
from fuzz.cluster import BROKER, COORDINATOR, GROUP_COORDINATOR, Cluster
from semel.coordinator.v1.cluster_pb2 import COORDINATOR_TYPE_GROUP, FindCoordinatorRequest
from semel_common.wire import methods
from semel_common.wire.connection import Connector
from semel_runtime.testing.virtual_time import after

FROM_START = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
INQUIRY_MS = 15_000
"""By then, participants have asked about their open transactions."""
OF_MOVES = (
    methods.COPY_LOG,
    methods.HAND_OVER_LOG,
    methods.HAND_OVER_GROUPS,
    methods.HAND_OVER_TRANSACTIONS,
)
COMPLETED = methods.COMPLETE_PARTITION_REASSIGNMENT
AT_ONCE = ProducerOptions(registration_delay_ms=0)


async def ordinary_work(client: SemelClient, name: str, network: Connector) -> None:
    """Use everything once, so that there are valid requests of every kind."""
    admin = client.admin()
    for role in (ServiceRole.BROKER, ServiceRole.GROUP_COORDINATOR):
        await admin.moves.decommission_instance(role, 0, undo=True)
    for topic in await admin.list_topics():
        if topic.name != VICTIM:
            await admin.delete_topic(topic.name, missing_ok=True)
    await admin.create_topic(name, partitions=2)
    async with client.producer() as plain:
        await plain.send_and_wait(name, b"plain", key=b"k", headers=[("h", b"v")])
    async with client.transactional_producer(name, options=AT_ONCE) as producer:
        await producer.init_transactions()
        await _consume_and_produce(client, producer, name)
        await producer.begin_transaction()
        await producer.send(name, b"to be aborted")
        await producer.abort()
        await admin.describe_transactions(name)
        await admin.get_transaction_outcome(name, 1)
        await _prepare(producer, name)
        await _be_helped(client, producer, name)
    await _write_jointly(client, name)
    await admin.list_transactions()
    await admin.transaction_history()
    await admin.list_groups()
    await admin.describe_group(name)
    await admin.list_consumer_group_offsets(name)
    await admin.describe_configs(name)
    await admin.incremental_alter_configs(name, set_configs={"retention.ms": "86400000"})
    await admin.describe_cluster()
    await _move(client, name)
    await _say_who_may(client, name)
    await _look_after(client, name, network)


async def _move(client: SemelClient, name: str) -> None:
    """Move what has nowhere to go, and ask as those do that take over."""
    moves = client.admin().moves
    await moves.alter_partition_reassignments({(name, 0): 0, (name, 1): None})
    await moves.rebalance_partitions()
    with suppress(InvalidRequestError):  # It is the last broker.
        await moves.decommission_instance(ServiceRole.BROKER, 0)
    await moves.decommission_instance(ServiceRole.BROKER, 0, undo=True)
    topic = await client.admin().describe_topic(name)
    log: dict[str, Any] = {
        "topic_id": topic.topic_id,
        "partition": 0,
        "leader_epoch": 0,
        "broker_id": 0,
    }
    groups: dict[str, Any] = {"partition": 1, "leader_epoch": 0, "instance_id": 0}
    fields = (log, log, groups, groups, log)
    asked = zip((BROKER, BROKER, GROUP_COORDINATOR, COORDINATOR, COORDINATOR), fields, strict=True)
    for method, (address, each) in zip((*OF_MOVES, COMPLETED), asked, strict=True):
        send = client._context.cluster.send
        with suppress(SemelError):  # It moves nowhere.
            await send(address, method, method.request(**each), timeout_ms=1_000)


async def _say_who_may(client: SemelClient, name: str) -> None:
    access = client.admin().access
    rule = AclBinding(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        principal="User:me",
        operation=AclOperation.READ,
    )
    await access.create_acls([rule])
    await access.describe_acls()
    await access.delete_acls([AclBindingFilter(resource_name=name)])
    await access.alter_client_quotas(name, set_limits={"request_rate": 10})
    await access.alter_client_quotas(name, remove=["request_rate"])
    await access.describe_client_quotas()


async def _prepare(producer: TransactionalProducer, name: str) -> None:
    await producer.begin_transaction()
    with suppress(BaseOffsetMismatchError):
        await producer.append(name, [b"only there"], partition=0, expected_base_offset=9_999)
    await producer.abort()
    await producer.begin_transaction()
    await producer.send(name, b"prepared")
    await producer.complete_prepared(await producer.prepare(), commit=True)


async def _be_helped(client: SemelClient, producer: TransactionalProducer, name: str) -> None:
    """Let an operator abort a transaction, and fence its producer."""
    operators = client.admin().operators
    await producer.begin_transaction()
    await producer.send_and_wait(name, b"open")
    manager = producer._transactions.manager
    await operators.list_open_transactions()
    await operators.describe_producers((name, 0))
    await operators.describe_writes([(name, 0)], producer_id=1, producer_epoch=0, from_time_ms=0)
    await operators.abort_transaction(
        name, manager.producer_id, manager.producer_epoch, operator="me", reason="to see"
    )
    await operators.fence_producer(name, operator="me", reason="to see")
    await operators.list_audit()


async def _write_jointly(client: SemelClient, name: str) -> None:
    joint = client.joint_transaction(f"{name}-joint", 1, owner="me")
    async with joint:
        await after(joint.handle.transaction_timeout_ms / 2)  # It is kept alive meanwhile.
        async with client.join(joint.handle) as writer:
            await writer.send(name, b"together")
            receipt = await writer.finish()
        await joint.commit([receipt])


async def _look_after(client: SemelClient, name: str, network: Connector) -> None:
    admin = client.admin()
    await admin.count_records({(name, 0): 0})
    await admin.delete_records({(name, 0): 1})
    await admin.create_partitions(name, 3)
    await admin.groups.alter_offsets(f"{name}-other", {(name, 0): 1, (name, 1): 1})
    await admin.groups.delete_offsets(f"{name}-other", [(name, 0)])
    await admin.groups.delete(f"{name}-other")
    await admin.create_topic(f"{name}-gone")
    await admin.delete_topic(f"{name}-gone")
    find = FindCoordinatorRequest(type=COORDINATOR_TYPE_GROUP, keys=[name])
    await network.connect(COORDINATOR).call(methods.FIND_COORDINATOR, find, timeout_ms=1_000)


async def leave_open(client: SemelClient, name: str) -> None:
    """Leave a transaction open for so long that its participants ask what has become of it."""
    options = ProducerOptions(transaction_timeout_ms=900_000)
    async with client.transactional_producer(name, options=options) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_and_wait(name, b"open for long")
        await after(INQUIRY_MS)
        await producer.commit()


async def _consume_and_produce(
    client: SemelClient, producer: TransactionalProducer, name: str
) -> None:
    async with client.consumer(name, FROM_START) as consumer:
        consumer.subscribe([name])
        while not await consumer.poll(timeout_ms=1_000):
            pass
        for _ in range(3):
            async with producer.transaction(wait_until_visible=True):
                await producer.send(name, b"in a transaction", partition=1)
                await producer.send_offsets(consumer.positions(), consumer.group_metadata())
        await consumer.commit()
        await consumer.end_offsets([(name, 0)])
        await consumer.offsets_for_times({(name, 0): 0})


class Victim:
    """Does a transaction now and then, and reads what it wrote."""

    def __init__(self, producer: TransactionalProducer, consumer: Consumer) -> None:
        self._producer = producer
        self._consumer = consumer
        self._done = 0

    async def go_on(self) -> None:
        """Do one more; an AssertionError, or an error of the client, if that does not work."""
        self._done += 1
        value = f"{self._done}".encode()
        async with self._producer.transaction(wait_until_visible=True):
            await self._producer.send(VICTIM, value)
        records = await self._consumer.poll(timeout_ms=10_000)
        assert [record.value for each in records.values() for record in each] == [value]


VICTIM = "victim"


@asynccontextmanager
async def victim_of(cluster: Cluster) -> AsyncIterator[Victim]:
    """Make a client with topic and transactional id of its own."""
    cluster.keeping = False
    async with cluster.client() as client:
        await client.admin().create_topic(VICTIM, partitions=1)
        producer = client.transactional_producer(VICTIM)
        await producer.init_transactions()
        consumer = client.consumer(options=FROM_START)
        consumer.assign([(VICTIM, 0)])
        cluster.keeping = True
        yield Victim(producer, consumer)
