"""A cluster is replaced by a fresh one, at the same addresses and with the same topic.

Both run as real processes. The clients of the first one go on beside a new program.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status

from aiosemel import (
    ClientOptions,
    ConsumerOptions,
    JointTransaction,
    JointWriter,
    OffsetReset,
    SemelClient,
    TopicPartition,
    TransformEvent,
)
from aiosemel.errors import (
    InconsistentClusterIdError,
    TransactionAbortableError,
    TransactionAbortedError,
)
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1.records_pb2 import Record
from semel_common.wire import methods
from semel_common.wire.cluster_header import CLUSTER_ID
from semel_common.wire.frames.grpc_pipe import StreamCall
from semel_local import ProcessCluster
from semel_local.layout import Role
from semel_local.process import Ended

pytestmark = pytest.mark.slow

UnaryCall: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]"

TOPIC = "orders"
ANOTHER = "this client belongs to cluster .*, but .* belongs to cluster .*; make a new client"
PATIENCE_S = 20
"""No test waits so long: it is far below every time-out of a client."""


@asynccontextmanager
async def cluster_at(
    folder: Path,
    *,
    port: int = 0,
    frames: str = "",
    on_ended: Callable[[Ended], None] | None = None,
) -> AsyncIterator[ProcessCluster]:
    """Run a cluster, with its topic. On one port, all its services have the same addresses."""
    settings = {role: {"frame_listeners": frames} for role in Role} if frames else {}
    async with ProcessCluster(folder, port=port, settings=settings, on_ended=on_ended) as cluster:
        async with SemelClient(cluster.bootstrap) as client:
            await client.admin().create_topic(TOPIC)
        yield cluster


class Program:
    """A program that has one of each object of a client, and has used it."""

    def __init__(self, client: SemelClient) -> None:
        self._client = client
        self.producer = client.producer()
        self.transactional = client.transactional_producer("transactional")
        self.consumer = client.consumer(
            "group", ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
        )
        self.joint = client.joint_transaction("joint", 1, owner="program")
        self.joint_writer = client.join(self.joint.handle)
        self.transform = client.transform(
            source=[TOPIC],
            group="transform",
            transactional_id="transform",
            handler=_nothing,
            on_event=self._transformed,
        )
        self._has_transformed = asyncio.Event()
        self.transforming: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def begin(self) -> None:
        """Use everything once."""
        await self.producer.send_and_wait(TOPIC, b"old")
        await self.transactional.init_transactions()
        await self.transactional.begin_transaction()
        await self.transactional.send_and_wait(TOPIC, b"old, in a transaction")
        self.consumer.subscribe([TOPIC])
        while not await self.consumer.poll(timeout_ms=1_000):
            pass
        await self.joint_writer.join()
        await self.joint_writer.send_and_wait(TOPIC, b"old, in a joint transaction")
        self.transforming = asyncio.ensure_future(self.transform.run())
        await self._has_transformed.wait()

    def calls(self) -> dict[str, Callable[[], Awaitable[object]]]:
        """Return the next result of each object."""
        return {
            "admin": self._client.admin().describe_cluster,
            "producer": lambda: self.producer.send_and_wait(TOPIC, b"old again"),
            "consumer": self._poll,
            "commit of offsets": self.consumer.commit,
            "committed offsets": lambda: self.consumer.committed([TopicPartition(TOPIC, 0)]),
            "transform": lambda: self.transforming,
            "new producer": lambda: self._client.producer().send_and_wait(TOPIC, b"old again"),
            "new transaction": self._client.transactional_producer("new").init_transactions,
            "new joint writer": self._client.join(self.joint.handle).join,
            "joint abort": self.joint.abort,
        }

    async def _transformed(self, _: TransformEvent) -> None:
        self._has_transformed.set()

    async def _poll(self) -> None:
        while True:
            await self.consumer.poll(timeout_ms=60_000)


async def _nothing(*_: object) -> tuple[()]:
    return ()


@pytest.mark.parametrize("frames", ["", "off"], ids=["sockets", "gRPC"])
async def test_all_objects_of_an_old_client_end_and_a_new_program_loses_nothing(
    tmp_path: Path, frames: str
) -> None:
    async with cluster_at(tmp_path / "a", port=0, frames=frames) as first:
        port = int(first.bootstrap.rpartition(":")[2])
        client = SemelClient(first.bootstrap, options=ClientOptions(metadata_max_age_ms=600_000))
        await client.open()
        program = Program(client)
        await program.begin()
    try:
        async with cluster_at(tmp_path / "b", port=port, frames=frames) as second:
            assert second.bootstrap == first.bootstrap
            async with asyncio.timeout(PATIENCE_S), SemelClient(second.bootstrap) as newer:
                await _end_all(program, newer)
    finally:
        async with asyncio.timeout(PATIENCE_S):
            await client.close()


async def _end_all(program: Program, newer: SemelClient) -> None:
    producer = newer.producer()
    sent = [await producer.send(TOPIC, b"new-%d" % number) for number in range(5)]
    for name, call in program.calls().items():
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await call()
        sent.append(await producer.send(TOPIC, name.encode()))
    await _end_transaction(program)
    await _end_joint(program.joint, program.joint_writer)
    offsets = [(await delivery).offset for delivery in sent]
    assert offsets == list(range(len(sent)))
    reader = newer.consumer(options=ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST))
    reader.assign([TopicPartition(TOPIC, 0)])
    values: list[bytes | None] = []
    while len(values) < len(sent):
        polled = await reader.poll(timeout_ms=1_000)
        values += [record.value for records in polled.values() for record in records]
    assert values == [b"new-%d" % n for n in range(5)] + [n.encode() for n in program.calls()]


async def _end_transaction(program: Program) -> None:
    """A record that was never sent is not committed; the outcome of no transaction is in doubt."""
    producer = program.transactional
    with pytest.raises((InconsistentClusterIdError, TransactionAbortedError), match=ANOTHER):
        await producer.commit()
    for call in (producer.abort, producer.begin_transaction):
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await call()


async def _end_joint(joint: JointTransaction, writer: JointWriter) -> None:
    with pytest.raises((InconsistentClusterIdError, TransactionAbortableError), match=ANOTHER):
        await writer.send_and_wait(TOPIC, b"old, in a joint transaction")
    with pytest.raises(TransactionAbortedError, match=ANOTHER):
        await writer.finish()
    with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
        await joint.commit([])


async def test_a_unary_call_for_another_cluster_is_refused_by_each_service(
    tmp_path: Path,
) -> None:
    async with cluster_at(tmp_path) as cluster:
        async with SemelClient(cluster.bootstrap) as client:
            own = (await client.admin().describe_cluster()).cluster_id
        for service, method in (
            ("coordinator-0", methods.METADATA),
            ("coordinator-0", methods.END_TXN),
            ("coordinator-0", methods.OPEN_FRAMES),
            ("broker-0", methods.PRODUCE),
            ("broker-0", methods.FETCH),
            ("group-coordinator-0", methods.TXN_OFFSET_COMMIT),
        ):
            async with grpc.aio.insecure_channel(cluster.address(service)) as channel:
                call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                    method.path
                )
                with pytest.raises(grpc.aio.AioRpcError) as raised:
                    await call(b"", metadata=((CLUSTER_ID, "another"),))
                _check_refusal(raised.value, own)
        async with grpc.aio.insecure_channel(cluster.address("broker-0")) as channel:
            stream: StreamCall = channel.stream_stream(f"/{methods.BROKER}/Stream")(
                metadata=((CLUSTER_ID, "another"),)
            )
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await stream.read()
            _check_refusal(raised.value, own)
            await _produce(channel, own)
            await _produce(channel, None)


async def _produce(channel: grpc.aio.Channel, cluster_id: str | None) -> None:
    """Produce as `grpcurl` does, which names its cluster or not."""
    records = broker.PlainRecords(records=[Record(value=b"by hand")])
    request = broker.ProduceRequest(
        partitions=[broker.ProducePartition(topic=TOPIC, partition=0, records=records)]
    )
    method = methods.PRODUCE
    call = channel.unary_unary(
        method.path, method.request.SerializeToString, method.response.FromString
    )
    metadata = () if cluster_id is None else ((CLUSTER_ID, cluster_id),)
    answer = await call(request, metadata=metadata)
    assert not answer.partitions[0].HasField("error")


def _check_refusal(error: grpc.aio.AioRpcError, own: str) -> None:
    status = rpc_status.from_call(error)  # type: ignore[arg-type]  # an error is the call's end
    assert status is not None
    assert "'another'" in status.message
    assert repr(own) in status.message
    info = ErrorInfo()
    assert status.details[0].Unpack(info)
    assert info.reason == "INCONSISTENT_CLUSTER_ID"
    assert (info.metadata["cluster_id"], info.metadata["named_cluster_id"]) == (own, "another")


async def test_a_broker_ends_when_its_controller_belongs_to_another_cluster(
    tmp_path: Path,
) -> None:
    async with cluster_at(tmp_path / "a") as first:
        port = int(first.bootstrap.rpartition(":")[2])
    (tmp_path / "a" / "broker-0").rename(tmp_path / "broker of a")
    ended: asyncio.Queue[Ended] = asyncio.Queue()
    async with cluster_at(tmp_path / "b", port=port, on_ended=ended.put_nowait) as second:
        assert await second.stop_service("broker-0") == 0
        (tmp_path / "b" / "broker-0").rename(tmp_path / "broker of b")
        (tmp_path / "broker of a").rename(tmp_path / "b" / "broker-0")
        await second.start("broker-0", wait=False)
        async with asyncio.timeout(PATIENCE_S):
            end = await ended.get()
        assert end.name == "broker-0"
        log = second.log_path("broker-0").read_text()
        assert f"coordinator-0 at {second.bootstrap} belongs to another cluster" in log
        assert "Traceback" not in log
