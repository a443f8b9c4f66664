"""A producer id is not enough to write under it: participants check the token first."""

from pathlib import Path

import pytest

from access.cluster import ADMIN, BROKER, COORDINATOR, GROUP_COORDINATOR, OTHER_COORDINATOR, Cluster
from aiosemel import ConsumerGroupMetadata
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1.records_pb2 import Record, RecordBatch
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as group
from semel_common.errors import InvalidProducerTokenError
from semel_common.wire import methods
from semel_common.wire.methods import Method, Req, Res
from semel_runtime.authentication.principal import Principal
from semel_runtime.testing.virtual_time import in_virtual_time

OTHER_ADMIN = Principal(name="other")
TXN = "writer-1"
"""Of coordinator 0."""


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    path = tmp_path / "secrets"
    path.write_text("s" * 32)
    path.chmod(0o600)
    return path


def cluster_with(secrets: Path) -> Cluster:
    return Cluster(
        {
            "producer_token_secrets_file": secrets,
            "super_users": f"{ADMIN};{OTHER_ADMIN}",
        }
    )


def produce(
    producer_id: int, token: bytes, *, transactional_id: str = TXN
) -> broker.ProduceRequest:
    records = broker.PlainRecords(
        records=[Record(value=b"v")],
        producer_id=producer_id,
        transactional=bool(transactional_id),
    )
    place = broker.ProducePartition(topic="orders", records=records)
    return broker.ProduceRequest(
        transactional_id=transactional_id, partitions=[place], producer_token=token
    )


def commit(producer_id: int, token: bytes) -> group.TxnOffsetCommitRequest:
    place = group.OffsetCommitPartition(partition=0, committed_offset=0)
    return group.TxnOffsetCommitRequest(
        transactional_id=TXN,
        producer_id=producer_id,
        group_id="g",
        member_epoch=-1,
        topics=[group.OffsetCommitTopic(topic="orders", partitions=[place])],
        producer_token=token,
    )


async def given(cluster: Cluster) -> transactions.InitProducerIdResponse:
    request = transactions.InitProducerIdRequest(
        transactional_id=TXN, instance_id="i", init_number=1, transaction_timeout_ms=60_000
    )
    return await cluster.ask(ADMIN, COORDINATOR, methods.INIT_PRODUCER_ID, request)


async def framed_and_unary(
    cluster: Cluster, principal: Principal, address: str, method: Method[Req, Res], request: Req
) -> None:
    for ask in (cluster.ask, cluster.ask_framed):
        with pytest.raises(InvalidProducerTokenError):
            await ask(principal, address, method, request)


def test_no_caller_writes_under_a_producer_id_without_its_token(secrets: Path) -> None:
    @in_virtual_time
    async def run() -> None:
        async with cluster_with(secrets).started() as cluster, cluster.client(ADMIN) as admin:
            await admin.admin().create_topic("orders")
            await cluster.settled()
            who = await given(cluster)
            assert len(who.producer_token) == 32
            producer_id, token = who.producer_id, who.producer_token
            for wrong in (b"", b"\0" * 32, token[:-1]):
                request = produce(producer_id, wrong)
                await framed_and_unary(cluster, ADMIN, BROKER, methods.PRODUCE, request)
                offsets = commit(producer_id, wrong)
                await framed_and_unary(
                    cluster, ADMIN, GROUP_COORDINATOR, methods.TXN_OFFSET_COMMIT, offsets
                )
            request = produce(producer_id, token)
            await framed_and_unary(cluster, OTHER_ADMIN, BROKER, methods.PRODUCE, request)
            other = produce(producer_id, token, transactional_id="other")
            await framed_and_unary(cluster, ADMIN, BROKER, methods.PRODUCE, other)
            answer = await cluster.ask(ADMIN, BROKER, methods.PRODUCE, request)
            assert answer.partitions[0].error.code == 0
            await cluster.ask(
                ADMIN, GROUP_COORDINATOR, methods.TXN_OFFSET_COMMIT, commit(producer_id, token)
            )

    run()


def test_one_token_is_not_good_for_the_batches_of_two_producers(secrets: Path) -> None:
    @in_virtual_time
    async def run() -> None:
        async with cluster_with(secrets).started() as cluster, cluster.client(ADMIN) as admin:
            await admin.admin().create_topic("orders")
            await cluster.settled()
            who = await given(cluster)
            request = produce(who.producer_id, who.producer_token)
            request.partitions.add(
                topic="orders", partition=1, batches=[RecordBatch(producer_id=who.producer_id + 1)]
            )
            await framed_and_unary(cluster, ADMIN, BROKER, methods.PRODUCE, request)

    run()


def test_a_write_without_a_producer_id_needs_no_token(secrets: Path) -> None:
    @in_virtual_time
    async def run() -> None:
        async with cluster_with(secrets).started() as cluster, cluster.client(ADMIN) as admin:
            await admin.admin().create_topic("orders")
            await cluster.settled()
            request = produce(0, b"", transactional_id="")
            answer = await cluster.ask(ADMIN, BROKER, methods.PRODUCE, request)
            assert answer.partitions[0].error.code == 0

    run()


def test_the_sdk_carries_the_token_with_everything(secrets: Path) -> None:
    @in_virtual_time
    async def run() -> None:
        async with cluster_with(secrets).started() as cluster, cluster.client(ADMIN) as client:
            await client.admin().create_topic("orders", partitions=2)
            await client.producer().send_and_wait("orders", b"plain")
            for transactional_id in ("one", "two", "three"):
                producer = client.transactional_producer(transactional_id)
                await producer.init_transactions()
                for _ in range(2):
                    async with producer.transaction(wait_until_visible=True):
                        await producer.send("orders", b"v", partition=0)
                        await producer.send_offsets(
                            {("orders", 0): 1}, ConsumerGroupMetadata(group_id="g")
                        )
            async with client.joint_transaction("joint", 1, owner="me") as joint:
                async with client.join(joint.handle) as writer:
                    await writer.send("orders", b"together")
                    receipt = await writer.finish()
                await joint.commit([receipt])

    run()


def test_a_joint_writers_token_is_its_own(secrets: Path) -> None:
    @in_virtual_time
    async def run() -> None:
        async with cluster_with(secrets).started() as cluster:
            name = transactions.JointTransaction(
                transactional_id=TXN, txn_version=1, owner="o", run="r"
            )
            tokens = set()
            for writer in ("a", "b"):
                request = transactions.JoinTxnRequest(
                    transaction=name, writer=writer, transaction_timeout_ms=60_000
                )
                answer = await cluster.ask(ADMIN, COORDINATOR, methods.JOIN_TXN, request)
                again = await cluster.ask(ADMIN, COORDINATOR, methods.JOIN_TXN, request)
                assert answer.producer_token == again.producer_token
                tokens.add(answer.producer_token)
            assert len(tokens) == 2

    run()


@in_virtual_time
async def test_without_a_secret_there_are_no_tokens() -> None:
    async with Cluster().started() as cluster:
        assert OTHER_COORDINATOR in cluster.apps
        assert (await given(cluster)).producer_token == b""
