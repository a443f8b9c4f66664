"""Authorization as users see it: parts of requests, hidden resources, and how soon rules count."""

from contextlib import suppress

import pytest
from google.protobuf.message import Message

from access.cluster import (
    ADMIN,
    BROKER,
    COORDINATOR,
    GROUP_COORDINATOR,
    OTHER_BROKER,
    OTHER_COORDINATOR,
    SERVICE,
    Cluster,
)
from aiosemel import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermission,
    AuthorizationError,
    ConsumerOptions,
    OffsetReset,
    ResourceType,
    SemelClient,
)
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1 import participants_pb2 as participants
from semel.common.v1.errors_pb2 import ErrorCode
from semel.common.v1.records_pb2 import Record
from semel.coordinator.v1 import cluster_pb2
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as group
from semel_common.errors import GroupAuthorizationFailedError, NotCoordinatorError
from semel_common.wire import methods
from semel_common.wire.methods import Method, Res
from semel_runtime.authentication.principal import ANONYMOUS, Principal
from semel_runtime.cluster.volume_admission import Admission
from semel_runtime.testing.virtual_time import after, in_virtual_time

ALICE = Principal(name="alice")
REFUSED = ErrorCode.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED
UNKNOWN_ID = ErrorCode.ERROR_CODE_UNKNOWN_TOPIC_ID
FROM_START = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)


def allow(
    operation: AclOperation,
    name: str = "orders",
    resource_type: ResourceType = ResourceType.TOPIC,
    *,
    deny: bool = False,
) -> AclBinding:
    return AclBinding(
        resource_type=resource_type,
        resource_name=name,
        principal="User:alice",
        operation=operation,
        permission=AclPermission.DENY if deny else AclPermission.ALLOW,
    )


async def allowed(cluster: Cluster, admin: SemelClient, *rules: AclBinding) -> None:
    await admin.admin().access.create_acls(rules)
    await cluster.settled()


@in_virtual_time
async def test_of_a_request_only_what_may_be_done_is_done_and_answered_in_its_place() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as admin:
        ids = [(await admin.admin().create_topic(name)).topic_id for name in ("a", "orders", "c")]
        await allowed(cluster, admin, allow(AclOperation.WRITE), allow(AclOperation.WRITE, "c"))
        plain = broker.PlainRecords(records=[Record(value=b"v")])
        topics = ["a", "orders", "nothing", "c"]
        request = broker.ProduceRequest(
            partitions=[broker.ProducePartition(topic=each, records=plain) for each in topics]
        )
        where = dict.fromkeys(topics, BROKER)
        for name in topics:
            image = cluster.image
            found = [topic for topic in image.topics if topic.name == name]
            if found and found[0].partitions[0].leader_id == 1:
                where[name] = OTHER_BROKER
        for address in {BROKER, OTHER_BROKER}:
            answer = await cluster.ask(ALICE, address, methods.PRODUCE, request)
            codes = [partition.error.code for partition in answer.partitions]
            assert codes[0] == codes[2] == REFUSED, "one that is not there looks the same"
            for number, name in ((1, "orders"), (3, "c")):
                done = where[name] == address
                assert (codes[number] == 0) is done
                if done:
                    assert answer.partitions[number].topic_id == ids[number - number // 3]
            assert [answer.partitions[n].base_offset for n in (0, 2)] == [-1, -1]


@in_virtual_time
async def test_a_caller_learns_nothing_of_a_topic_that_it_may_not_describe() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as admin:
        secret = await admin.admin().create_topic("secret")
        for name in ("secret", "missing"):
            request = cluster_pb2.MetadataRequest(topics=[name])
            answer = await cluster.ask(ALICE, COORDINATOR, methods.METADATA, request)
            (topic,) = answer.topics
            assert (topic.error.code, topic.topic_id, len(topic.partitions)) == (REFUSED, "", 0)
        messages = set()
        for topic_id in (secret.topic_id, "x" * len(secret.topic_id)):
            request = cluster_pb2.MetadataRequest(topic_ids=[topic_id])
            answer = await cluster.ask(ALICE, COORDINATOR, methods.METADATA, request)
            fetch = broker.FetchRequest(
                min_bytes=1, partitions=[broker.FetchPartition(topic_id=topic_id)]
            )
            fetched = await cluster.ask(ALICE, BROKER, methods.FETCH, fetch)
            for error in (answer.topics[0].error, fetched.partitions[0].error):
                assert error.code == UNKNOWN_ID
                messages.add(error.message.replace(topic_id, "…"))
        assert len(messages) == 1


@in_virtual_time
async def test_offsets_are_answered_in_their_places() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as admin:
        for name in ("a", "orders", "c"):
            await admin.admin().create_topic(name, partitions=2)
        offsets = {(name, 0): 0 for name in ("a", "orders", "c")}
        await admin.admin().groups.alter_offsets("g", offsets)
        await allowed(
            cluster,
            admin,
            allow(AclOperation.READ, "g", ResourceType.GROUP),
            allow(AclOperation.READ),
        )
        fetch = group.FetchOffsetsRequest(
            group_id="g",
            topics=[
                group.OffsetFetchTopic(topic=name, partitions=[0, 1])
                for name in ("a", "orders", "c")
            ],
        )
        found = await cluster.ask(ALICE, GROUP_COORDINATOR, methods.FETCH_OFFSETS, fetch)
        assert [
            (offset.topic, offset.partition, offset.error.code) for offset in found.offsets
        ] == [
            ("a", 0, REFUSED),
            ("a", 1, REFUSED),
            ("orders", 0, 0),
            ("orders", 1, 0),
            ("c", 0, REFUSED),
            ("c", 1, REFUSED),
        ]
        commit = group.CommitOffsetsRequest(
            group_id="g",
            member_epoch=-1,
            topics=[
                group.OffsetCommitTopic(
                    topic=name,
                    partitions=[group.OffsetCommitPartition(partition=0, committed_offset=0)],
                )
                for name in ("a", "orders", "missing")
            ],
        )
        answer = await cluster.ask(ALICE, GROUP_COORDINATOR, methods.COMMIT_OFFSETS, commit)
        assert [(error.topic, error.error.code) for error in answer.errors] == [
            ("a", REFUSED),
            ("missing", REFUSED),
        ]


@in_virtual_time
async def test_a_fetch_with_a_refused_partition_does_not_wait_for_the_others() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as admin:
        await admin.admin().create_topic("orders")
        await allowed(cluster, admin, allow(AclOperation.READ))
        request = broker.FetchRequest(
            min_bytes=1,
            max_wait_ms=4_000,
            partitions=[
                broker.FetchPartition(topic="orders"),
                broker.FetchPartition(topic="secret"),
            ],
        )
        begun = cluster.time()
        answer = await cluster.ask(ALICE, BROKER, methods.FETCH, request)
        assert [partition.error.code for partition in answer.partitions][1] == REFUSED
        assert cluster.time() - begun < 1


@in_virtual_time
async def test_a_change_asked_of_any_coordinator_counts_everywhere_within_milliseconds() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as admin:
        await admin.admin().create_topic("orders", partitions=2)
        request = broker.ListOffsetsRequest(
            partitions=[
                broker.ListOffsetsPartition(
                    topic="orders", partition=n, spec=broker.OFFSET_SPEC_LATEST
                )
                for n in (0, 1)
            ]
        )

        async def refused(address: str) -> bool:
            answer = await cluster.ask(ALICE, address, methods.LIST_OFFSETS, request)
            return any(partition.error.code == REFUSED for partition in answer.partitions)

        access = admin.admin().access
        rule = allow(AclOperation.DESCRIBE)
        for change, expected in (
            (access.create_acls([rule]), False),
            (access.delete_acls([AclBindingFilter(principal="User:alice")]), True),
        ):
            await change
            stored = cluster.time()
            while {await refused(BROKER), await refused(OTHER_BROKER)} != {expected}:
                await after(1)
                assert cluster.time() - stored < 0.05


@in_virtual_time
async def test_who_cannot_reach_the_controller_goes_on_with_the_rules_that_it_knows() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as admin:
        await admin.admin().create_topic("orders")
        await allowed(cluster, admin, allow(AclOperation.DESCRIBE))
        cluster.network.cut(COORDINATOR)
        await after(20_000)
        request = cluster_pb2.MetadataRequest(topics=["orders", "secret"])
        answer = await cluster.ask(ALICE, OTHER_COORDINATOR, methods.METADATA, request)
        assert [topic.error.code for topic in answer.topics] == [0, REFUSED]


@in_virtual_time
async def test_a_producer_without_permission_hears_so_at_its_send() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as admin:
        await admin.admin().create_topic("orders")
        await allowed(cluster, admin, allow(AclOperation.DESCRIBE))
        async with cluster.client(ALICE) as client:
            with pytest.raises(AuthorizationError):
                await (await client.producer().send("orders", b"v"))
            with pytest.raises(AuthorizationError):
                await client.producer().send("secret", b"v")
            with pytest.raises(AuthorizationError):
                await client.transactional_producer("t").init_transactions()


@in_virtual_time
async def test_a_transaction_is_ended_nowhere_but_where_its_owner_may_write() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as admin:
        await admin.admin().create_topic("orders")
        await allowed(cluster, admin, allow(AclOperation.WRITE, "t", ResourceType.TRANSACTIONAL_ID))
        named = participants.Participants(group_ids=["ghost"])
        init = transactions.InitProducerIdRequest(
            transactional_id="t", instance_id="i", init_number=1, transaction_timeout_ms=60_000
        )
        address, begun = await asked_owner(cluster, methods.INIT_PRODUCER_ID, init)
        end = transactions.EndTxnRequest(
            transactional_id="t",
            producer_id=begun.producer_id,
            producer_epoch=begun.producer_epoch,
            result=participants.TRANSACTION_RESULT_COMMIT,
            participants=named,
        )
        with pytest.raises(GroupAuthorizationFailedError, match="READ on group 'ghost'"):
            await cluster.ask(ALICE, address, methods.END_TXN, end)
        end.result = participants.TRANSACTION_RESULT_ABORT
        await cluster.ask(ALICE, address, methods.END_TXN, end)
        await after(5_000)
        machine = cluster.apps[GROUP_COORDINATOR]._machine  # type: ignore[attr-defined]
        assert machine.offsets.known_group_ids() == []


async def asked_owner(
    cluster: Cluster, method: Method[Message, Res], request: Message
) -> tuple[str, Res]:
    """Ask both coordinators; returns which of them is in charge, and its answer."""
    for address in (COORDINATOR, OTHER_COORDINATOR):
        with suppress(NotCoordinatorError):
            return address, await cluster.ask(ALICE, address, method, request)
    raise AssertionError("nobody is in charge")


@in_virtual_time
async def test_a_producer_refused_at_a_send_aborts_and_goes_on() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as admin:
        for name in ("orders", "secret"):
            await admin.admin().create_topic(name)
        await allowed(
            cluster,
            admin,
            allow(AclOperation.WRITE),
            allow(AclOperation.DESCRIBE, "secret"),
            allow(AclOperation.WRITE, "t", ResourceType.TRANSACTIONAL_ID),
        )
        async with (
            cluster.client(ALICE) as client,
            client.transactional_producer("t") as producer,
        ):
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send_and_wait("orders", b"aborted")
            with pytest.raises(AuthorizationError):
                await producer.send_and_wait("secret", b"aborted")
            await producer.abort()
            await producer.begin_transaction()
            await producer.send_and_wait("orders", b"committed")
            await producer.commit()


@in_virtual_time
async def test_a_topic_that_is_deleted_does_not_keep_a_transaction_from_its_commit() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as admin:
        for name in ("orders", "gone"):
            await admin.admin().create_topic(name)
        await allowed(
            cluster,
            admin,
            allow(AclOperation.WRITE),
            allow(AclOperation.WRITE, "gone"),
            allow(AclOperation.WRITE, "t", ResourceType.TRANSACTIONAL_ID),
        )
        async with (
            cluster.client(ALICE) as client,
            client.transactional_producer("t") as producer,
        ):
            await producer.init_transactions()
            await producer.begin_transaction()
            for name in ("orders", "gone"):
                await producer.send_and_wait(name, b"v")
            await admin.admin().delete_topic("gone")
            await after(1_000)
            await producer.commit()


@in_virtual_time
async def test_a_user_with_the_permissions_of_the_guide_transforms_exactly_once() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as admin:
        for name in ("orders", "out"):
            await admin.admin().create_topic(name)
        await allowed(
            cluster,
            admin,
            allow(AclOperation.READ),
            allow(AclOperation.WRITE, "out"),
            allow(AclOperation.READ, "g", ResourceType.GROUP),
            allow(AclOperation.WRITE, "t", ResourceType.TRANSACTIONAL_ID),
        )
        await admin.producer().send_and_wait("orders", b"v")
        async with cluster.client(ALICE) as client:
            consumer = client.consumer("g", FROM_START)
            consumer.subscribe(["orders"])
            while not await consumer.poll(timeout_ms=1_000):
                pass
            producer = client.transactional_producer("t")
            await producer.init_transactions()
            async with producer.transaction(wait_until_visible=True):
                await producer.send("out", b"w")
                await producer.send_offsets(consumer.positions(), consumer.group_metadata())
        ends = await admin.admin().list_consumer_group_offsets("g")
        assert [end.offset for end in ends.values() if end is not None] == [1]


@in_virtual_time
async def test_without_authentication_every_caller_may_do_everything_and_no_check_interferes() -> (
    None
):
    async with Cluster({"authorizer": "off"}).started() as cluster:
        for app in cluster.apps.values():
            for endpoint in app.handlers:
                assert isinstance(endpoint.guard, Admission)
                assert endpoint.guard.inner is None
        async with cluster.client(ANONYMOUS) as client:
            await client.admin().create_topic("orders")
            await client.producer().send_and_wait("orders", b"v")


@in_virtual_time
async def test_services_are_held_up_by_no_rule() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as admin:
        everything = AclBinding(
            resource_type=ResourceType.TOPIC,
            resource_name="*",
            principal="User:*",
            operation=AclOperation.ALL,
            permission=AclPermission.DENY,
        )
        await allowed(cluster, admin, everything)
        await admin.admin().create_topic("orders")
        request = cluster_pb2.MetadataRequest(all_topics=True)
        answer = await cluster.ask(SERVICE, COORDINATOR, methods.METADATA, request)
        assert [topic.name for topic in answer.topics] == ["orders"]
