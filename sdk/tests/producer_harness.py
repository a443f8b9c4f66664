"""A cluster in memory, as far as producers see it: coordinator, brokers and a group coordinator.

It follows protocol.md, sections 3 to 5, in the simplest way that shows their effects.
``calls`` keeps every request, ``script`` the faults to come.
"""

from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import TypeVar

from fake_connection import FakeConnection
from google.protobuf.message import Message
from network_faults import (
    Fault,
    Hold,
    HoldReply,
    LoseReply,
    LoseRequest,
    Refuse,
    RefusePartition,
)
from prepared_fake import FakePrepared
from producer_fakes import FixedClock, Log, TransactionalId, missing

from aiosemel import (
    ClientOptions,
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    ProducerOptions,
    SemelClient,
    TopicPartition,
    TransactionalProducer,
)
from aiosemel._cluster.metadata_cache import TOPICS_IN_REQUEST
from aiosemel.errors import (
    InvalidProducerIdMappingError,
    InvalidRequestError,
    NetworkExceptionError,
    NotLeaderOrFollowerError,
    OutOfOrderSequenceNumberError,
    ProducerFencedError,
    SemelError,
    TopicAlreadyExistsError,
    UnknownTopicIdError,
)
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1 import participants_pb2 as participants
from semel.common.v1.records_pb2 import RecordBatch
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.coordinator.v1 import outcomes_pb2 as outcomes
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as group
from semel_common import ids
from semel_common.record_batches.batches import decode_records
from semel_common.wire import status
from semel_runtime.testing.virtual_time import after

BOOTSTRAP = "coordinator:1"
LATENCY_S = 0.001

GROUP = ConsumerGroupMetadata(group_id="g", member_id="m", member_epoch=4)
OFFSETS: dict[TopicPartition, OffsetAndMetadata | int] = {
    TopicPartition("in", 0): 5,
    TopicPartition("in", 1): OffsetAndMetadata(7, "mine"),
}
QUICK = ProducerOptions(request_timeout_ms=500, delivery_timeout_ms=1_000, max_block_ms=2_000)

Message_ = TypeVar("Message_", bound=Message)


class FakeCluster:
    """All services. Implements ``Connector``."""

    def __init__(self, brokers: int = 1, coordinators: int = 1) -> None:
        self.brokers, self.coordinators = brokers, coordinators
        self.cluster_id = "c"
        self.strangers: dict[str, str] = {}
        """Clusters of addresses where services of other clusters are, by address."""
        self.coordinator_host = "coordinator"
        self.version = 1
        self.topics: dict[str, str] = {}
        self.configs: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self.logs: dict[ids.TopicPartition, Log] = {}
        self.transactional: dict[str, TransactionalId] = {}
        self.prepared = FakePrepared(self.transactional)
        self.committed: dict[tuple[int, int], participants.Participants] = {}
        self.offsets: dict[tuple[int, int, str], list[tuple[int, Message]]] = defaultdict(list)
        self.calls: list[tuple[str, Message]] = []
        self.addresses: list[str] = []
        self.script: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.away: set[str] = set()  # Addresses without an answer.
        self.down = self.closed = False
        self.on_the_way: set[str] = set()  # Topics that only the controller knows so far.
        self.transactional_id_expiration_ms = self.last_producer_id = 0
        self.moved: dict[int, str] = {}
        # Answers that are ready, and functions that make them, by address and method.
        self.canned: dict[tuple[str, str], Message] = {}
        self.answering: dict[tuple[str, str], Callable[[Message], Message]] = {}

    # -- arranging and looking -------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int = 1) -> None:
        topic_id = f"id-{name}-{self.version}"
        self.topics[name] = topic_id
        self.version += 1
        for partition in range(partitions):
            self.logs[ids.TopicPartition(topic_id, partition)] = Log(partition % self.brokers)

    def recreate_topic(self, name: str, partitions: int = 1) -> None:
        """Delete a topic, and create another one under its name."""
        topic_id = self.topics.pop(name)
        for place in [log for log in self.logs if log.topic_id == topic_id]:
            del self.logs[place]
        self.create_topic(name, partitions)

    def enlarge_topic(self, name: str, partitions: int) -> None:
        for at in range(partitions):
            place = ids.TopicPartition(self.topics[name], at)
            self.logs.setdefault(place, Log(at % self.brokers))

    def log(self, topic: str, partition: int = 0) -> Log:
        return self.logs[ids.TopicPartition(self.topics[topic], partition)]

    def stored(self, topic: str, partition: int = 0) -> list[bytes | None]:
        """Return every value that is in a log, in order."""
        batches = self.log(topic, partition).batches
        return [value for batch in batches for value in decode_records(batch).values]

    def visible(self, topic: str, partition: int = 0) -> list[bytes | None]:
        """Return what a READ_COMMITTED reader sees."""
        key = ids.TopicPartition(self.topics[topic], partition)
        return [
            value
            for batch in self.logs[key].batches
            if not batch.transactional or self._is_committed(key, batch)
            for value in decode_records(batch).values
        ]

    def _is_committed(self, key: ids.TopicPartition, batch: RecordBatch) -> bool:
        named = self.committed.get((batch.producer_id, batch.producer_epoch))
        return named is not None and any(
            topic.topic_id == key.topic_id and key.partition in topic.partitions
            for topic in named.topics
        )

    def asked(self, message: type[Message_]) -> list[Message_]:
        """Return all requests of a kind."""
        return [request for _, request in self.calls if isinstance(request, message)]

    def names(self) -> list[str]:
        """Return the names of all requests but Metadata, in order."""
        return [name for name, _ in self.calls if name != "Metadata"]

    def then(self, method: str, *faults: Fault) -> None:
        """Let faults happen to the next requests of a method; None: nothing happens to one."""
        self.script[method].extend(faults)

    def time_out(self, transactional_id: str) -> None:
        """Abort the current transaction as the coordinator does when its time is up."""
        self._decide(self.transactional[transactional_id], "ABORTED", "TIMED_OUT")

    def supersede(self, transactional_id: str) -> None:
        """Let another producer take over."""
        state = self.transactional[transactional_id]
        self._decide(state, "ABORTED", "FENCED")
        state.instance = ("successor", 1)

    def _decide(self, state: TransactionalId, outcome: str, reason: str) -> None:
        state.outcomes[state.epoch] = (outcome, reason)
        state.epoch += 1
        for log in self.logs.values():
            log.raise_fence(state.producer_id, state.epoch)

    # -- the network -----------------------------------------------------------------------------

    def cluster_at(self, address: str) -> str:
        return self.strangers.get(address, self.cluster_id)

    def connect(self, address: str) -> FakeConnection:
        return FakeConnection(self, address)

    async def close(self) -> None:
        self.closed = True

    async def deliver(self, address: str, name: str, request: Message) -> Message:
        self.calls.append((name, request))
        self.addresses.append(address)
        fault = self.script[name].popleft() if self.script[name] else None
        await elapse(LATENCY_S)
        if self.down or address in self.away:
            raise NetworkExceptionError(f"no service answers at {address}")
        match fault:
            case Refuse(error):
                raise error
            case LoseRequest():
                raise NetworkExceptionError("request was lost")
            case Hold(released):
                await released.wait()
            case RefusePartition(error):
                assert isinstance(request, broker.ProduceRequest)
                return _refused(request, error)
            case None | LoseReply() | HoldReply():
                pass
        response = self._handle(address, name, request)
        await elapse(LATENCY_S)
        if isinstance(fault, LoseReply):
            raise NetworkExceptionError("answer was lost")
        if isinstance(fault, HoldReply):
            await fault.released.wait()
        return response

    def _handle(self, address: str, name: str, request: Message) -> Message:
        if (address, name) in self.canned:
            return self.canned[address, name]
        if (address, name) in self.answering:
            return self.answering[address, name](request)
        handlers: dict[str, Callable[..., Message]] = {
            "Metadata": self._metadata,
            "DescribeCluster": self._describe_cluster,
            "InitProducerId": self._init_producer_id,
            "AddPartitionsToTxn": self._add_partitions,
            "AddOffsetsToTxn": self._add_offsets,
            "TxnOffsetCommit": self._txn_offset_commit,
            "EndTxn": self._end_txn,
            "GetTransactionOutcome": self._get_transaction_outcome,
            **self.prepared.handlers(),
            "CreateTopics": self._create_topics,
        }
        if name == "Produce":
            assert isinstance(request, broker.ProduceRequest)
            return self._produce(address, request)
        return handlers[name](request)

    # -- the coordinator -------------------------------------------------------------------------

    @property
    def layout(self) -> cluster.ClusterLayout:
        return cluster.ClusterLayout(
            transaction_log_partitions=5,
            coordinators=self.coordinators,
            group_partitions=5,
            group_coordinators=1,
        )

    def described(
        self, instances: Iterable[cluster.InstanceDescription]
    ) -> cluster.DescribeClusterResponse:
        """Return the answer to DescribeCluster with these instances."""
        return cluster.DescribeClusterResponse(
            cluster_id=self.cluster_id, version=1, layout=self.layout, instances=instances
        )

    def _metadata(self, request: cluster.MetadataRequest) -> cluster.MetadataResponse:
        for field in ("topics", "topic_ids"):
            if (count := len(getattr(request, field))) > TOPICS_IN_REQUEST:
                raise InvalidRequestError(f"{field} has {count} entries")
        response = cluster.MetadataResponse(
            cluster_id=self.cluster_id, version=self.version, layout=self.layout
        )
        name = self.coordinator_host
        coordinator = cluster.SERVICE_ROLE_COORDINATOR
        hosts = [(coordinator, i, f"{name}{i or ''}") for i in range(self.coordinators)]
        hosts.append((cluster.SERVICE_ROLE_GROUP_COORDINATOR, 0, "group"))
        broker_role, brokers = cluster.SERVICE_ROLE_BROKER, range(self.brokers)
        hosts += [(broker_role, i, self.moved.get(i, f"broker{i}")) for i in brokers]
        for role, instance_id, host in hosts:
            response.instances.add(role=role, instance_id=instance_id, host=host, port=1)
        names = [name for name, topic_id in self.topics.items() if topic_id in request.topic_ids]
        for name in self.topics if request.all_topics else [*request.topics, *names]:
            topic = response.topics.add(name=name)
            is_seen = request.from_controller or name not in self.on_the_way
            if name not in self.topics or not is_seen:
                topic.error.CopyFrom(missing(name, by_controller=request.from_controller))
                continue
            topic.topic_id = self.topics[name]
            topic.configs.update(self.configs[name])
            for key, log in sorted(self.logs.items()):
                if key.topic_id == topic.topic_id:
                    topic.partitions.add(index=key.partition, leader_id=log.leader)
        return response

    def _describe_cluster(
        self, _request: cluster.DescribeClusterRequest
    ) -> cluster.DescribeClusterResponse:
        known = self._metadata(cluster.MetadataRequest())
        return self.described(
            cluster.InstanceDescription(instance=instance, leader_partitions=1)
            for instance in known.instances
        )

    def _create_topics(self, request: cluster.CreateTopicsRequest) -> cluster.CreateTopicsResponse:
        response = cluster.CreateTopicsResponse()
        for topic in request.topics:
            result = response.topics.add(name=topic.name)
            if topic.name in self.topics:
                error = TopicAlreadyExistsError(f"topic {topic.name} exists")
                result.error.CopyFrom(status.to_value(error))
            else:
                result.partitions = topic.partitions or 1
                self.create_topic(topic.name, result.partitions)
                result.topic_id = self.topics[topic.name]
        return response

    def _init_producer_id(
        self, request: transactions.InitProducerIdRequest
    ) -> transactions.InitProducerIdResponse:
        if not request.HasField("transactional_id"):
            self.last_producer_id += 1
            return transactions.InitProducerIdResponse(producer_id=self.last_producer_id)
        state = self.transactional.get(request.transactional_id)
        if state is None:
            self.last_producer_id += 1
            state = TransactionalId(self.last_producer_id)
            self.transactional[request.transactional_id] = state
        caller = (request.instance_id, request.init_number)
        if caller != state.instance:
            self._decide(state, "ABORTED", "FENCED")
            state.instance = caller
        return transactions.InitProducerIdResponse(
            producer_id=state.producer_id,
            producer_epoch=state.epoch,
            transactional_id_expiration_ms=self.transactional_id_expiration_ms,
            prepared=self.prepared.kept(state, request),
        )

    def _add_partitions(
        self, request: transactions.AddPartitionsToTxnRequest
    ) -> transactions.AddPartitionsToTxnResponse:
        self._check(request.transactional_id, request.producer_epoch)
        return transactions.AddPartitionsToTxnResponse()

    def _add_offsets(
        self, request: transactions.AddOffsetsToTxnRequest
    ) -> transactions.AddOffsetsToTxnResponse:
        self._check(request.transactional_id, request.producer_epoch)
        return transactions.AddOffsetsToTxnResponse()

    def _check(self, transactional_id: str, epoch: int) -> None:
        if epoch != self.transactional[transactional_id].epoch:
            raise ProducerFencedError(f"producer epoch {epoch} is fenced")

    def _end_txn(self, request: transactions.EndTxnRequest) -> transactions.EndTxnResponse:
        state = self.transactional.get(request.transactional_id)
        if state is None or state.producer_id != request.producer_id:
            raise InvalidProducerIdMappingError("another producer id")
        commit = request.result == participants.TRANSACTION_RESULT_COMMIT
        if request.producer_epoch == state.epoch:
            if commit:
                self.committed[state.producer_id, state.epoch] = request.participants
            self._decide(state, "COMMITTED" if commit else "ABORTED", "CLIENT")
        else:
            state.check_repeat(request.producer_epoch, commit=commit)
        return transactions.EndTxnResponse(
            producer_id=state.producer_id, producer_epoch=state.epoch
        )

    def _get_transaction_outcome(
        self, request: outcomes.GetTransactionOutcomeRequest
    ) -> outcomes.GetTransactionOutcomeResponse:
        return self.transactional[request.transactional_id].answer(request)

    # -- brokers ---------------------------------------------------------------------------------

    def _produce(self, address: str, request: broker.ProduceRequest) -> broker.ProduceResponse:
        response = broker.ProduceResponse()
        for asked in request.partitions:
            result = response.partitions.add(topic_id=asked.topic_id, partition=asked.partition)
            try:
                result.base_offset = self._append(address, asked)
            except SemelError as error:
                result.error.CopyFrom(status.to_value(error))
        return response

    def _append(self, address: str, asked: broker.ProducePartition) -> int:
        log = self.logs.get(ids.TopicPartition(asked.topic_id, asked.partition))
        if log is None:
            raise UnknownTopicIdError(f"no topic {asked.topic_id}")
        if address != f"{self.moved.get(log.leader, f'broker{log.leader}')}:1":
            raise NotLeaderOrFollowerError(f"{address} does not lead the partition")
        (batch,) = asked.batches
        return log.append(batch, asked)

    # -- the group coordinator -------------------------------------------------------------------

    def _txn_offset_commit(
        self, request: group.TxnOffsetCommitRequest
    ) -> group.TxnOffsetCommitResponse:
        key = (request.producer_id, request.producer_epoch, request.group_id)
        kept = self.offsets[key]
        if request.base_sequence > len(kept):
            raise OutOfOrderSequenceNumberError(f"{request.base_sequence}, not {len(kept)}")
        if request.base_sequence == len(kept):
            kept.append((request.base_sequence, request))
        return group.TxnOffsetCommitResponse()


def _refused(request: broker.ProduceRequest, error: SemelError) -> broker.ProduceResponse:
    value = status.to_value(error)
    return broker.ProduceResponse(
        partitions=[
            broker.ProducePartitionResult(
                topic_id=asked.topic_id, partition=asked.partition, error=value
            )
            for asked in request.partitions
        ]
    )


@asynccontextmanager
async def open_client(
    fake: FakeCluster, options: ClientOptions | None = None, bootstrap: str = BOOTSTRAP
) -> AsyncIterator[SemelClient]:
    """Open a client of a fake cluster."""
    client = SemelClient(
        bootstrap, options=options, connector=fake, clock=FixedClock(), random=Random(7)
    )
    async with client:
        yield client


async def begun(
    client: SemelClient, options: ProducerOptions | None = None
) -> TransactionalProducer:
    """Return a producer in a transaction."""
    producer = await ready(client, options)
    await producer.begin_transaction()
    return producer


def ends(fake: FakeCluster) -> list[transactions.EndTxnRequest]:
    return fake.asked(transactions.EndTxnRequest)


async def ready(
    client: SemelClient, options: ProducerOptions | None = None
) -> TransactionalProducer:
    producer = client.transactional_producer("orders", options)
    await producer.init_transactions()
    return producer


async def elapse(seconds: float) -> None:
    await after(seconds * 1000)


def values(count: int, size: int = 1, first: int = 0) -> Sequence[bytes]:
    """Return values that tell their order."""
    return [b"%0*d" % (size, number) for number in range(first, first + count)]
