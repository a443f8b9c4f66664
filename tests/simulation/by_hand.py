"""A client written from the protos alone: it makes calls that the SDK never makes.

It ends transactions for the registered participants, as Kafka's clients do; it commits without
waiting for the answers to its sends, and names no participant; it moves a group several times in a
transaction, and outside of it meanwhile; it sends another record under a sequence that is used; and
now and then it makes an epoch up, moves a group when its transaction has ended, or moves one as a
member in a partition that it does not hold.
"""

from contextlib import AbstractContextManager, suppress
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

from aiosemel import ProducerFencedError, SemelError
from aiosemel._cluster.retry import Deadline
from aiosemel.errors import (
    AbortableTransactionError,
    OutOfOrderSequenceNumberError,
    RetriableError,
    StaleMemberEpochError,
)
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
SHELF = "shelf"
"""A group whose members hold nothing yet. The history knows nothing of it, either."""
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
        kinds = ("registered", "unanswered", "made up", "late", "as a member", "used sequence")
        kind = random.choices(kinds, (5, 3, 1, 2, 1, 2))[0]
        partition = random.randrange(PARTITIONS)
        try:
            match kind:
                case "registered":
                    await self._registered(hand, partition, random)
                case "unanswered":
                    hand.send_later(partition, self._value(hand))
                    await after(random.choice((0, 0, 5)))
                    await hand.end(_COMMIT, participants.Participants())
                case "late":
                    await self._late(hand, random)
                case "used sequence":
                    await self._under_used_sequences(hand, partition)
                case "as a member":
                    await self._as_member(hand, f"{random.getrandbits(64)}")
                case _:
                    hand.make_up(partition, random.randint(1_000, 9_999))
                    await after(random.choice((0, 50)))
        except (AbortableTransactionError, RetriableError):
            await hand.end(_ABORT, None)

    async def _registered(self, hand: "Hand", partition: int, random: Random) -> None:
        await hand.add_partitions(partition)
        await hand.send(partition, self._value(hand))
        if random.random() < 0.6:
            await hand.add_offsets(BOOKS)
            for _ in range(2):
                await hand.commit_offset(self._next_offset(), transactional=True)
            if random.random() < 0.5:
                await hand.commit_offset(self._next_offset(), transactional=False)
        await hand.end(_ABORT if random.random() < 0.1 else _COMMIT, None)

    async def _under_used_sequences(self, hand: "Hand", partition: int) -> None:
        """Send something else under sequences that are used, as two producers with one id do."""
        await hand.add_partitions(partition)
        await hand.send(partition, self._value(hand))
        await hand.send_under_last_sequence(partition, self._value(hand))
        await hand.add_offsets(BOOKS)
        await hand.commit_offset(self._next_offset(), transactional=True)
        try:
            await hand.hold_offsets(hand.offsets_of(BOOKS, self._next_offset()))
        except OutOfOrderSequenceNumberError:
            await hand.end(_COMMIT, None)
        else:
            self._around.failures.append(f"{BOOKS} took another commit of offsets for a repeat")

    async def _late(self, hand: "Hand", random: Random) -> None:
        await hand.add_offsets(BOOKS)
        late = hand.offsets_of(BOOKS, self._next_offset())
        await hand.end(_ABORT, None)
        await after(random.uniform(0, 30))
        with suppress(ProducerFencedError):
            await hand.hold_offsets(late)

    async def _as_member(self, hand: "Hand", member_id: str) -> None:
        epoch = await hand.join(SHELF, member_id)
        await hand.add_offsets(SHELF)
        request = hand.offsets_of(SHELF, 1)
        request.member_id, request.member_epoch = member_id, epoch
        with suppress(StaleMemberEpochError):
            await hand.hold_offsets(request)
        await hand.end(_ABORT, None)

    def _next_offset(self) -> int:
        self._booked += 1
        return self._booked

    def _value(self, hand: "Hand") -> str:
        return f"{hand.process}-{next(self._around.records.numbers)}"


class Hand:
    """One producer: its requests, and its state between them."""

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
            self._topics[name] = (await self._cluster.cache.topic(name, deadline)).topic_id
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

    async def add_offsets(self, group_id: str) -> None:
        """Register a group."""
        request = coordinator.AddOffsetsToTxnRequest(group_id=group_id, **self._who())
        await self._ask_coordinator(methods.ADD_OFFSETS_TO_TXN, request)

    async def send(self, partition: int, value: str) -> None:
        """Send a record, again and again until it is stored."""
        op, request = self._sending(partition, value, self._writer)
        with self._settled(op):
            offset = await self._produce(partition, request)
        self._recorder.returned(self.process, op, Outcome.OK, Sent(base_offset=offset))

    async def send_under_last_sequence(self, partition: int, value: str) -> None:
        """Send a record as if it were the one before, which is another: it must be refused."""
        self._sequences[partition] -= 1
        op, request = self._sending(partition, value, self._writer)
        with self._settled(op):
            try:
                offset = await self._produce(partition, request)
            except OutOfOrderSequenceNumberError as error:
                name = type(error).__name__
                self._recorder.returned(self.process, op, Outcome.FAILED, error=name)
                return
        self._recorder.returned(self.process, op, Outcome.OK, Sent(base_offset=offset))

    def send_later(self, partition: int, value: str) -> None:
        """Send a record and forget it."""
        _, request = self._sending(partition, value, self._writer)
        self._context.spawn(self._produce_quietly(partition, request), name="by hand")

    def make_up(self, partition: int, epochs_ahead: int) -> None:
        """Send a record in an epoch that will never come, of which the history knows nothing.

        Semel only promises that no committed read sees it.
        """
        epoch = self._writer.producer_epoch + epochs_ahead
        request = self._request(partition, f"{MADE_UP}-{epoch}", epoch, sequence=0)
        self._context.spawn(self._produce_quietly(partition, request), name="by hand")

    async def commit_offset(self, offset: int, *, transactional: bool) -> None:
        """Move the group, in the transaction or outside of it."""
        held = self.offsets_of(BOOKS, offset)
        if transactional:
            held.base_sequence = self._offset_sequence
            self._offset_sequence += 1
            await self.hold_offsets(held)
        else:
            request = group.CommitOffsetsRequest(
                group_id=BOOKS, member_epoch=-1, topics=held.topics
            )
            await self._ask_group(BOOKS, methods.COMMIT_OFFSETS, request)

    def offsets_of(self, group_id: str, offset: int) -> group.TxnOffsetCommitRequest:
        """Make the request that moves a group in this transaction, as its first."""
        partitions = [group.OffsetCommitPartition(partition=0, committed_offset=offset)]
        topics = [group.OffsetCommitTopic(topic_id=self._topics[BOOKED], partitions=partitions)]
        return group.TxnOffsetCommitRequest(
            group_id=group_id, member_epoch=-1, topics=topics, **self._who()
        )

    async def hold_offsets(self, request: group.TxnOffsetCommitRequest) -> None:
        """Move a group in a transaction."""
        await self._ask_group(request.group_id, methods.TXN_OFFSET_COMMIT, request)

    async def join(self, group_id: str, member_id: str) -> int:
        """Become a member of a group; returns the epoch."""
        request = group.ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member_id,
            rebalance_timeout_ms=2_000,
            subscription=group.Subscription(topics=[TOPIC]),
        )
        answer = await self._ask_group(group_id, methods.CONSUMER_GROUP_HEARTBEAT, request)
        return answer.member_epoch

    async def end(
        self,
        result: participants.TransactionResult.ValueType,
        named: participants.Participants | None,
    ) -> None:
        """End the transaction; without names, for the registered participants."""
        # A commit that names no participant commits nothing.
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

    async def _ask_group(self, group_id: str, method: Method[Req, Res], request: Req) -> Res:
        route = self._cluster.group_coordinator_of(group_id)
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
