"""A client that somebody wrote by hand, from the protos: it does what the SDK never does.

It ends transactions by what is registered, as Kafka's clients do; it commits without waiting for
the answers to what it sent, naming nobody; it moves a group several times in a transaction, and
outside of it meanwhile; and now and then it makes an epoch up.
"""

from contextlib import AbstractContextManager
from random import Random
from typing import TypedDict

from semel_checker.names import Outcome, Partition, Writer
from semel_checker.operations import (
    EndTransaction,
    Initialized,
    InitProducer,
    Send,
    Sent,
    SentRecord,
)

from aiosemel import SemelError
from aiosemel._retry import Deadline
from aiosemel.errors import AbortableTransactionError, RetriableError
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1 import participants_pb2 as participants
from semel.common.v1.records_pb2 import Record
from semel.coordinator.v1 import transactions_pb2 as coordinator
from semel.group.v1 import group_pb2 as group
from semel_common.ids import TopicPartition
from semel_common.wire import methods
from semel_common.wire.methods import Method, Req, Res
from semel_common.wire.status import from_value
from semel_runtime.testing.virtual_time import after
from simulation.named_records import MADE_UP
from simulation.network import Trace
from simulation.recorded import RecordedClient
from simulation.workloads import Surroundings

TRANSACTIONAL_ID = "by-hand"
BOOKS = "books"
"""A group without members. The history knows nothing of it: the invariants do."""
TOPIC = "b"
PARTITIONS = 2
BOOKED = "a"

_COMMIT = participants.TRANSACTION_RESULT_COMMIT
_ABORT = participants.TRANSACTION_RESULT_ABORT


class ByHand:
    """So many transactions."""

    def __init__(self, quota: int, around: Surroundings) -> None:
        self._left = quota
        self._around = around
        self._booked = 0

    @property
    def done(self) -> bool:
        """See ``Work``."""
        return self._left <= 0

    async def run(self, client: RecordedClient, random: Random) -> None:
        """Go on after every error as a new producer."""
        while not self.done:
            hand = Hand(client, f"{random.getrandbits(64)}", self._around.trace)
            try:
                await hand.init()
                while not self.done:
                    self._left -= 1
                    self._around.transactions += 1
                    await self._transact(hand, random)
                    if not self._around.calm:
                        await after(random.expovariate(1 / 600))
            except SemelError as error:
                self._around.trace("by hand", client.process, repr(error))
                await after(random.uniform(0, 500))

    async def _transact(self, hand: "Hand", random: Random) -> None:
        kind = random.choices(("registered", "unanswered", "made up"), (6, 3, 1))[0]
        partition = random.randrange(PARTITIONS)
        try:
            match kind:
                case "registered":
                    await self._registered(hand, partition, random)
                case "unanswered":
                    hand.send_later(partition, self._value(hand))
                    await after(random.choice((0, 0, 5)))
                    await hand.end(_COMMIT, participants.Participants())
                case _:
                    hand.make_up(partition, random.randint(1_000, 9_999))
                    await after(random.choice((0, 50)))
        except (AbortableTransactionError, RetriableError):
            await hand.end(_ABORT, None)

    async def _registered(self, hand: "Hand", partition: int, random: Random) -> None:
        await hand.add_partitions(partition)
        await hand.send(partition, self._value(hand))
        if random.random() < 0.6:
            await hand.add_offsets()
            for _ in range(2):
                await hand.commit_offset(self._next_offset(), transactional=True)
            if random.random() < 0.5:
                await hand.commit_offset(self._next_offset(), transactional=False)
        await hand.end(_ABORT if random.random() < 0.1 else _COMMIT, None)

    def _next_offset(self) -> int:
        self._booked += 1
        return self._booked

    def _value(self, hand: "Hand") -> str:
        return f"{hand.process}-{next(self._around.records.numbers)}"


class Hand:
    """One producer: requests, and what is to be remembered between them."""

    def __init__(self, client: RecordedClient, instance_id: str, trace: Trace) -> None:
        self.process = client.process
        self._records = client.records
        self._recorder = client.records.recorder
        self._trace = trace
        self._context = client.client._context
        self._cluster = self._context.cluster
        self._instance_id = instance_id
        self._writer = Writer(-1, -1)
        self._topics: dict[str, str] = {}
        self._sequences: dict[int, int] = {}
        self._offset_sequence = 0

    async def init(self) -> None:
        """Take the transactional id over."""
        deadline = self._deadline()
        for name in (TOPIC, BOOKED):
            self._topics[name] = (await self._cluster.topic(name, deadline)).topic_id
        operation = InitProducer(transactional_id=TRANSACTIONAL_ID, wait_complete=False)
        op = self._recorder.invoked(self.process, operation)
        request = coordinator.InitProducerIdRequest(
            transactional_id=TRANSACTIONAL_ID,
            instance_id=self._instance_id,
            init_number=1,
            transaction_timeout_ms=3_000,
            wait=coordinator.WAIT_FOR_DECIDED,
        )
        with self._settled(op):
            answer = await self._ask_coordinator(methods.INIT_PRODUCER_ID, request)
        self._start(answer.producer_id, answer.producer_epoch)
        self._recorder.returned(self.process, op, Outcome.OK, Initialized(writer=self._writer))

    async def add_partitions(self, partition: int) -> None:
        """Register a partition."""
        topics = [
            participants.TopicPartitions(topic_id=self._topics[TOPIC], partitions=[partition])
        ]
        request = coordinator.AddPartitionsToTxnRequest(topics=topics, **self._who())
        await self._ask_coordinator(methods.ADD_PARTITIONS_TO_TXN, request)

    async def add_offsets(self) -> None:
        """Register the group."""
        request = coordinator.AddOffsetsToTxnRequest(group_id=BOOKS, **self._who())
        await self._ask_coordinator(methods.ADD_OFFSETS_TO_TXN, request)

    async def send(self, partition: int, value: str) -> None:
        """Send a record, again and again until it is stored."""
        op, request = self._sending(partition, value, self._writer)
        with self._settled(op):
            offset = await self._produce(partition, request)
        self._recorder.returned(self.process, op, Outcome.OK, Sent(base_offset=offset))

    def send_later(self, partition: int, value: str) -> None:
        """Send a record and forget it."""
        _, request = self._sending(partition, value, self._writer)
        self._context.spawn(self._produce_quietly(partition, request), name="by hand")

    def make_up(self, partition: int, epochs_ahead: int) -> None:
        """Send a record in an epoch that will never come, of which the history knows nothing.

        Nobody promises anything of it, but that no committed read sees it.
        """
        epoch = self._writer.producer_epoch + epochs_ahead
        request = self._request(partition, f"{MADE_UP}-{epoch}", epoch, sequence=0)
        self._context.spawn(self._produce_quietly(partition, request), name="by hand")

    async def commit_offset(self, offset: int, *, transactional: bool) -> None:
        """Move the group, in the transaction or outside of it."""
        partitions = [group.OffsetCommitPartition(partition=0, committed_offset=offset)]
        topics = [group.OffsetCommitTopic(topic_id=self._topics[BOOKED], partitions=partitions)]
        route = self._cluster.group_coordinator_of(BOOKS)
        if not transactional:
            request = group.CommitOffsetsRequest(group_id=BOOKS, member_epoch=-1, topics=topics)
            await self._cluster.call(
                route, methods.COMMIT_OFFSETS, request, deadline=self._deadline()
            )
            return
        held = group.TxnOffsetCommitRequest(
            base_sequence=self._offset_sequence,
            group_id=BOOKS,
            member_epoch=-1,
            topics=topics,
            **self._who(),
        )
        self._offset_sequence += 1
        await self._cluster.call(route, methods.TXN_OFFSET_COMMIT, held, deadline=self._deadline())

    async def end(
        self,
        result: participants.TransactionResult.ValueType,
        named: participants.Participants | None,
    ) -> None:
        """End the transaction; without names, for those that are registered."""
        # A commit that names nobody commits nothing.
        commits = result == _COMMIT and named is None
        operation = EndTransaction(writer=self._writer, commit=commits)
        op = self._recorder.invoked(self.process, operation)
        request = coordinator.EndTxnRequest(result=result, participants=named, **self._who())
        with self._settled(op):
            answer = await self._ask_coordinator(methods.END_TXN, request)
        self._recorder.returned(self.process, op, Outcome.OK)
        self._start(answer.producer_id, answer.producer_epoch)

    # -- inside ----------------------------------------------------------------------------------

    def _start(self, producer_id: int, producer_epoch: int) -> None:
        self._writer = Writer(producer_id, producer_epoch)
        self._sequences = {}
        self._offset_sequence = 0

    def _sending(
        self, partition: int, value: str, writer: Writer
    ) -> tuple[int, broker.ProduceRequest]:
        place = Partition(TOPIC, partition)
        operation = Send(writer=writer, partition=place, records=(SentRecord(value),))
        op = self._recorder.invoked(self.process, operation)
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + 1
        return op, self._request(partition, value, writer.producer_epoch, sequence)

    def _request(
        self, partition: int, value: str, producer_epoch: int, sequence: int
    ) -> broker.ProduceRequest:
        records = broker.PlainRecords(
            records=[Record(value=value.encode())],
            producer_id=self._writer.producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        topic_id = self._topics[TOPIC]
        place = broker.ProducePartition(topic_id=topic_id, partition=partition, records=records)
        return broker.ProduceRequest(transactional_id=TRANSACTIONAL_ID, partitions=[place])

    async def _produce(self, partition: int, request: broker.ProduceRequest) -> int:
        route = self._cluster.leader_of(TopicPartition(self._topics[TOPIC], partition))
        found: list[int] = []

        async def attempt() -> None:
            answer = await self._cluster.attempt(
                route, methods.PRODUCE, request, deadline=self._deadline()
            )
            result = answer.partitions[0]
            if result.HasField("error"):
                raise from_value(result.error)
            found.append(result.base_offset)

        await self._cluster.insist(attempt, deadline=self._deadline())
        return found[0]

    async def _produce_quietly(self, partition: int, request: broker.ProduceRequest) -> None:
        try:
            await self._produce(partition, request)
        except SemelError as error:
            self._trace("by hand", self.process, repr(error))

    async def _ask_coordinator(self, method: Method[Req, Res], request: Req) -> Res:
        route = self._cluster.coordinator_of(TRANSACTIONAL_ID)
        return await self._cluster.call(route, method, request, deadline=self._deadline())

    def _who(self) -> "_Who":
        return {
            "transactional_id": TRANSACTIONAL_ID,
            "producer_id": self._writer.producer_id,
            "producer_epoch": self._writer.producer_epoch,
        }

    def _settled(self, op: int) -> AbstractContextManager[None]:
        return self._records.settled(self.process, op)

    def _deadline(self) -> Deadline:
        return Deadline.after_ms(4_000)


class _Who(TypedDict):
    transactional_id: str
    producer_id: int
    producer_epoch: int
