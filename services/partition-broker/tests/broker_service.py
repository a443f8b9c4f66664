"""A whole broker in memory: its app, its volume, and coordinators that a test scripts."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from broker_harness import BROKER_ID, CLUSTER_ID, ORDERS, OTHER_BROKER_ID, PRODUCER, image, topic

from semel.broker.v1 import broker_pb2 as wire
from semel.broker.v1.producers_pb2 import PartitionWrites
from semel.common.v1.participants_pb2 import (
    ParticipantError,
    Participants,
    TopicPartitions,
    TransactionResult,
    TxnMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from semel.common.v1.records_pb2 import Codec, RecordBatch
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel_broker.app import BrokerApp
from semel_broker.compaction.compactor import Compactor
from semel_broker.config import BrokerSettings
from semel_broker.machine.records import Record
from semel_common.error_codes import ErrorCode
from semel_common.ids import TopicPartition
from semel_common.record_batches.batches import Columns, seal
from semel_common.wire.methods import (
    BROKER_WRITE_TXN_MARKERS,
    COUNT_RECORDS,
    FETCH,
    INQUIRE_TRANSACTIONS,
    LIST_OFFSETS,
    PRODUCE,
    Method,
    Req,
    Res,
)
from semel_runtime.app import Environment
from semel_runtime.authentication.principal import Origin
from semel_runtime.cluster.metadata_image import ClusterImage, Listener
from semel_runtime.journal.contract import Journal
from semel_runtime.journal.journal_errors import JournalError
from semel_runtime.participant.inquiry_loop import InquiryLoop
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.testing.clock import ManualClock
from semel_runtime.testing.controller import ScriptedController
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.network import MemoryNetwork
from semel_runtime.testing.payloads import undeclared
from semel_runtime.testing.virtual_time import ended
from semel_runtime.testing.volume import MemoryVolume

READ_COMMITTED = wire.ISOLATION_LEVEL_READ_COMMITTED
READ_UNCOMMITTED = wire.ISOLATION_LEVEL_READ_UNCOMMITTED
COMMIT = TransactionResult.TRANSACTION_RESULT_COMMIT
ABORT = TransactionResult.TRANSACTION_RESULT_ABORT

Answer = Callable[[transactions.Inquiry], transactions.InquiryAnswer]


def two_partitions(version: int = 1) -> ClusterImage:
    """Metadata in which the broker leads partitions 0 and 1 of `orders`, and another one 2."""
    return image(version, topic("orders", BROKER_ID, BROKER_ID, OTHER_BROKER_ID))


def ask_later(_: transactions.Inquiry) -> transactions.InquiryAnswer:
    """Answer as a coordinator that cannot say."""
    return transactions.InquiryAnswer(outcome=transactions.INQUIRY_OUTCOME_LATER)


@dataclass(slots=True)
class Coordinators:
    """Both coordinators of the cluster; the first is the controller."""

    network: MemoryNetwork
    controller: ScriptedController = field(
        default_factory=lambda: ScriptedController(two_partitions())
    )
    answer: Answer = ask_later
    inquiries: list[transactions.InquireTransactionsRequest] = field(default_factory=list)
    _second: Handlers = field(default_factory=Handlers)

    def __post_init__(self) -> None:
        for each in (self.controller.handlers, self._second):
            each.add(INQUIRE_TRANSACTIONS, self._inquire)

    def serve(self) -> None:
        """Take their addresses in the network."""
        self.network.serve("coordinator:1", self.controller.handlers)
        self.network.serve("coordinator:2", self._second)

    async def _inquire(
        self, request: transactions.InquireTransactionsRequest, _: Call
    ) -> transactions.InquireTransactionsResponse:
        self.inquiries.append(request)
        answers = [self.answer(inquiry) for inquiry in request.inquiries]
        return transactions.InquireTransactionsResponse(answers=answers)


@dataclass(slots=True)
class Broker:
    """A broker that is ready, and calls to it."""

    app: BrokerApp
    clock: ManualClock
    coordinators: Coordinators

    @property
    def inquiries(self) -> InquiryLoop[TopicPartition, Record]:
        """The loop that asks coordinators."""
        assert self.app._background is not None
        return self.app._background.inquiries

    async def inquire(self) -> None:
        """Ask coordinators about all that is due, and wait for their answers."""
        async with asyncio.TaskGroup() as group:
            await self.inquiries.ask(group)

    @property
    def compactor(self) -> Compactor:
        """What compacts its logs."""
        assert self.app._background is not None
        return self.app._background.compactor

    async def compact(self) -> None:
        """Look for dirty logs once, and compact them."""
        await self.compactor.compact()

    @property
    def waiting(self) -> int:
        """How many fetches wait."""
        return len(self.app._waiters)

    async def call(
        self, method: Method[Req, Res], request: Req, deadline: float | None = None
    ) -> Res:
        """Make one call, over a wire's bytes."""
        endpoint = self.app.handlers.find(method.path)
        assert endpoint is not None
        copy = method.request.FromString(request.SerializeToString())
        response = await endpoint.handler(
            copy, Call(origin=Origin(listener="default"), deadline=deadline)
        )
        return method.response.FromString(response.SerializeToString())

    async def produce(
        self, *batches: RecordBatch, partition: int = 0
    ) -> wire.ProducePartitionResult:
        """Append batches to one partition."""
        request = wire.ProducePartition(topic="orders", partition=partition, batches=batches)
        return await self.produce_as(request)

    async def produce_as(self, partition: wire.ProducePartition) -> wire.ProducePartitionResult:
        """Append to one partition what a test has put together."""
        response = await self.call(PRODUCE, wire.ProduceRequest(partitions=[partition]))
        (result,) = response.partitions
        return result

    async def fetch(
        self,
        offset: int = 0,
        *,
        partition: int = 0,
        isolation: wire.IsolationLevel.ValueType = READ_COMMITTED,
        plain: bool = False,
        max_bytes: int = 0,
        min_bytes: int = 0,
        max_wait_ms: int = 0,
        deadline: float | None = None,
    ) -> wire.FetchPartitionResult:
        """Read from one partition."""
        request = wire.FetchRequest(
            isolation_level=isolation,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            max_wait_ms=max_wait_ms,
            plain_records=plain,
            partitions=[
                wire.FetchPartition(topic="orders", partition=partition, fetch_offset=offset)
            ],
        )
        (result,) = (await self.call(FETCH, request, deadline)).partitions
        return result

    async def list_offset(
        self,
        *,
        spec: wire.OffsetSpec.ValueType | None = None,
        timestamp_ms: int | None = None,
        isolation: wire.IsolationLevel.ValueType = READ_COMMITTED,
    ) -> wire.ListOffsetsPartitionResult:
        """Find one offset in partition 0."""
        partition = wire.ListOffsetsPartition(topic="orders", partition=0)
        if spec is not None:
            partition.spec = spec
        if timestamp_ms is not None:
            partition.timestamp_ms = timestamp_ms
        request = wire.ListOffsetsRequest(isolation_level=isolation, partitions=[partition])
        (result,) = (await self.call(LIST_OFFSETS, request)).partitions
        return result

    async def count_records(
        self,
        from_offset: int = 0,
        *,
        isolation: wire.IsolationLevel.ValueType = READ_COMMITTED,
        topic: str = "orders",
    ) -> wire.CountRecordsPartitionResult:
        """Count records in partition 0."""
        partition = wire.CountRecordsPartition(topic=topic, partition=0, from_offset=from_offset)
        request = wire.CountRecordsRequest(isolation_level=isolation, partitions=[partition])
        (result,) = (await self.call(COUNT_RECORDS, request)).partitions
        return result

    async def mark(self, *markers: TxnMarker, awaited: bool = False) -> WriteTxnMarkersResponse:
        """Write markers."""
        request = WriteTxnMarkersRequest(cluster_id=CLUSTER_ID, markers=markers, awaited=awaited)
        return await self.call(BROKER_WRITE_TXN_MARKERS, request)

    async def end(
        self,
        result: TransactionResult.ValueType,
        *,
        epoch: int = 0,
        producer_id: int = PRODUCER,
        partitions: Sequence[int] = (0,),
    ) -> None:
        """Write one marker, which every partition must take."""
        response = await self.mark(
            marker(result, epoch=epoch, producer_id=producer_id, partitions=partitions)
        )
        assert [list(each.errors) for each in response.results] == [[]]


def batch(
    *values: bytes,
    producer_id: int = PRODUCER,
    epoch: int = 0,
    sequence: int = 0,
    transactional: bool = True,
    timestamps_ms: Sequence[int] | None = None,
    codec: Codec.ValueType = Codec.CODEC_UNSPECIFIED,
) -> RecordBatch:
    """A batch as clients send it."""
    columns = Columns(
        values=values, keys=None, timestamps_ms=timestamps_ms or [1_000] * len(values), headers={}
    )
    return seal(
        columns,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
        codec=codec,
    )


def compressed(*values: bytes, timestamps_ms: Sequence[int] | None = None) -> RecordBatch:
    """A batch without producer id that takes little room, and does not declare what it opens to."""
    return undeclared(
        Columns(
            values=values,
            keys=None,
            timestamps_ms=timestamps_ms or [1_000] * len(values),
            headers={},
        )
    )


def plain(*values: bytes, timestamps_ms: Sequence[int] | None = None) -> RecordBatch:
    """A batch without producer id."""
    return batch(*values, producer_id=0, transactional=False, timestamps_ms=timestamps_ms)


def marker(
    result: TransactionResult.ValueType,
    *,
    epoch: int = 0,
    producer_id: int = PRODUCER,
    partitions: Sequence[int] = (0,),
    topic_id: str = ORDERS,
    coordinator_epoch: int = 1,
) -> TxnMarker:
    """A marker as coordinators send it."""
    return TxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        result=result,
        coordinator_epoch=coordinator_epoch,
        participants=Participants(
            topics=[TopicPartitions(topic_id=topic_id, partitions=partitions)]
        ),
    )


def code(
    result: wire.ProducePartitionResult
    | wire.FetchPartitionResult
    | wire.ListOffsetsPartitionResult
    | wire.CountRecordsPartitionResult
    | PartitionWrites
    | ParticipantError,
) -> ErrorCode | None:
    """Return the error of a result."""
    return ErrorCode(result.error.code) if result.HasField("error") else None


def settings(**changes: int) -> BrokerSettings:
    """The settings of the broker under test."""
    return BrokerSettings.model_validate(
        {
            "data_dir": Path("unused"),
            "instance_id": BROKER_ID,
            "controller": "coordinator:1",
            **changes,
        }
    )


@asynccontextmanager
async def serving(
    volume: MemoryVolume | Journal,
    *,
    clock: ManualClock | None = None,
    coordinators: Coordinators | None = None,
    **changes: int,
) -> AsyncIterator[Broker]:
    """Run a broker on a volume (or a journal of another engine) until the end of the block."""
    if coordinators is None:
        coordinators = Coordinators(MemoryNetwork())
    coordinators.serve()
    clock = clock or ManualClock()
    environment = Environment(
        journal=MemoryJournal(volume) if isinstance(volume, MemoryVolume) else volume,
        connector=coordinators.network,
        clock=clock,
        random=Random(1),
        listeners=(Listener(name="default", host="broker", port=1),),
    )
    async with BrokerApp(settings(**changes), environment) as app:
        background = asyncio.create_task(app.run(), name="broker under test")
        await app.ready.wait()
        roles = {registration.role for registration in coordinators.controller.registrations}
        assert roles == {cluster.SERVICE_ROLE_BROKER}
        yield Broker(app, clock, coordinators)
        await ended(background, expected=(JournalError,))
    await coordinators.network.close()


async def turns(count: int = 20) -> None:
    """Let everything that can go on do so."""
    for _ in range(count):
        await asyncio.sleep(0)
