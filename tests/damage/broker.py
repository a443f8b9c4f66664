"""A whole broker on a journal file, without a network: a controller that a script answers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from semel.broker.v1 import broker_pb2 as wire
from semel.common.v1.participants_pb2 import (
    Participants,
    TopicPartitions,
    TransactionResult,
    TxnMarker,
    WriteTxnMarkersRequest,
)
from semel.common.v1.records_pb2 import RecordBatch
from semel_broker.app import BrokerApp
from semel_broker.config import BrokerSettings
from semel_common.ids import NO_PRODUCER_ID, producer_id_of
from semel_common.record_batches.batches import Columns, seal
from semel_common.wire.methods import BROKER_WRITE_TXN_MARKERS, PRODUCE, Method, Req, Res
from semel_runtime.app import Environment
from semel_runtime.authentication.principal import Origin
from semel_runtime.cluster.metadata_image import (
    ClusterImage,
    Instance,
    Layout,
    Listener,
    PartitionLeader,
    ServiceRole,
    Topic,
)
from semel_runtime.journal.contract import Journal
from semel_runtime.journal.journal_errors import JournalError
from semel_runtime.server.calls import Call
from semel_runtime.testing.clock import ManualClock
from semel_runtime.testing.controller import ScriptedController
from semel_runtime.testing.network import MemoryNetwork
from semel_runtime.testing.virtual_time import ended

ABORT = TransactionResult.TRANSACTION_RESULT_ABORT
COMMIT = TransactionResult.TRANSACTION_RESULT_COMMIT
PARTITIONS = 2
PRODUCER = producer_id_of(3, 1)
TOPIC = "orders"
_TOPIC_ID, _CLUSTER_ID = "id-orders", "cluster-a"
_INSTANCE_ID = 1
SERVICE = f"semel-broker {_INSTANCE_ID}"

_IMAGE = ClusterImage(
    cluster_id=_CLUSTER_ID,
    version=1,
    layout=Layout(
        transaction_log_partitions=50, coordinators=1, group_partitions=50, group_coordinators=1
    ),
    instances=(
        Instance(
            role=ServiceRole.COORDINATOR,
            instance_id=0,
            listeners=(Listener(name="default", host="coordinator", port=1),),
        ),
    ),
    topics=(
        Topic(
            topic_id=_TOPIC_ID,
            name=TOPIC,
            partitions=(PartitionLeader(_INSTANCE_ID, 0),) * PARTITIONS,
            configs=(),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that serves."""

    app: BrokerApp
    journal: Journal

    async def call(self, method: Method[Req, Res], request: Req) -> Res:
        """Make one call."""
        endpoint = self.app.handlers.find(method.path)
        assert endpoint is not None
        response = await endpoint.handler(request, Call(origin=Origin(listener="default")))
        return method.response.FromString(response.SerializeToString())

    async def produce(self, partition: int, *batches: RecordBatch) -> None:
        """Append batches to one partition."""
        asked = wire.ProducePartition(topic=TOPIC, partition=partition, batches=batches)
        (result,) = (await self.call(PRODUCE, wire.ProduceRequest(partitions=[asked]))).partitions
        assert not result.HasField("error"), result.error

    async def end(self, partition: int, epoch: int, result: TransactionResult.ValueType) -> None:
        """End the producer's transaction in one partition."""
        topics = [TopicPartitions(topic_id=_TOPIC_ID, partitions=[partition])]
        marker = TxnMarker(
            producer_id=PRODUCER,
            producer_epoch=epoch,
            result=result,
            coordinator_epoch=1,
            participants=Participants(topics=topics),
        )
        request = WriteTxnMarkersRequest(cluster_id=_CLUSTER_ID, markers=[marker])
        await self.call(BROKER_WRITE_TXN_MARKERS, request)


@asynccontextmanager
async def serving(journal: Journal) -> AsyncIterator[Broker]:
    """Run a broker on a journal until the end of the block; nothing is read from memory."""
    network = MemoryNetwork()
    network.serve("coordinator:1", ScriptedController(_IMAGE).handlers)
    environment = Environment(
        journal=journal,
        connector=network,
        clock=ManualClock(),
        random=Random(1),
        listeners=(Listener(name="default", host="broker", port=1),),
    )
    settings = BrokerSettings(
        data_dir=Path("unused"),
        instance_id=_INSTANCE_ID,
        controller="coordinator:1",
        log_tail_cache_bytes=0,
    )
    async with BrokerApp(settings, environment) as app:
        background = asyncio.create_task(app.run(), name="broker on trial")
        try:
            await app.ready.wait()
            yield Broker(app, journal)
        finally:
            await ended(background, expected=(JournalError,))
    await network.close()


def batch(
    *values: bytes, timestamps_ms: Sequence[int] = (), epoch: int | None = None
) -> RecordBatch:
    """Make a batch as clients send it: with an epoch, one of the producer's transaction."""
    transactional = epoch is not None
    return seal(
        Columns(
            values=values,
            keys=None,
            timestamps_ms=timestamps_ms or [1_000] * len(values),
            headers={},
        ),
        producer_id=PRODUCER if transactional else NO_PRODUCER_ID,
        producer_epoch=epoch or 0,
        base_sequence=0,
        transactional=transactional,
    )
