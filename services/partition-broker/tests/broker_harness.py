"""The broker's machine with a journal that is a list: decide, then replay, as the runner does."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from msgspec.structs import replace

from semel_broker.journal.record_serde import BrokerSerde
from semel_broker.machine import BrokerMachine, LogLimits
from semel_broker.machine.records import Record
from semel_broker.machine.values import (
    Appended,
    BatchHeader,
    Deleted,
    DeletePosition,
    FetchPosition,
    IsolationLevel,
    Outcome,
    PartitionName,
    ProducePartition,
    ReadPlan,
)
from semel_common.errors import SemelError
from semel_common.ids import TopicPartition, producer_id_of
from semel_runtime.cluster.metadata_image import (
    ClusterImage,
    Instance,
    Layout,
    Listener,
    PartitionLeader,
    ServiceRole,
    Topic,
)
from semel_runtime.cluster.topic_options import Overrides, altered
from semel_runtime.machine import Result
from semel_runtime.participant.inquiry import OpenTransactionAt

T = TypeVar("T")

BROKER_ID = 1
OTHER_BROKER_ID = 2
CLUSTER_ID = "cluster-a"
ORDERS = "id-orders"
PRODUCER = producer_id_of(3, 1)
OTHER = producer_id_of(4, 1)
PLAIN = 0
COMMITTED = IsolationLevel.READ_COMMITTED
UNCOMMITTED = IsolationLevel.READ_UNCOMMITTED

LAYOUT = Layout(
    transaction_log_partitions=50, coordinators=2, group_partitions=50, group_coordinators=1
)


def topic(
    name: str, *leaders: int, epoch: int = 0, topic_id: str = "", configs: Overrides = ()
) -> Topic:
    """A topic whose partitions are led by the brokers given."""
    return Topic(
        topic_id=topic_id or f"id-{name}",
        name=name,
        partitions=tuple(PartitionLeader(leader, epoch) for leader in leaders),
        configs=configs,
    )


def image(version: int, *topics: Topic, cluster_id: str = CLUSTER_ID) -> ClusterImage:
    """The metadata of a cluster with two coordinators and some topics."""
    return ClusterImage(
        cluster_id=cluster_id,
        version=version,
        layout=LAYOUT,
        instances=tuple(
            Instance(
                role=ServiceRole.COORDINATOR,
                instance_id=each,
                listeners=(Listener(name="default", host="coordinator", port=each + 1),),
            )
            for each in range(LAYOUT.coordinators)
        ),
        topics=topics,
    )


def at(partition: int = 0, topic: str = "orders") -> PartitionName:
    """A partition, named by its topic's name."""
    return PartitionName(topic=topic, topic_id="", partition=partition)


def header(
    *,
    producer_id: int = PRODUCER,
    epoch: int = 0,
    sequence: int = 0,
    count: int = 1,
    transactional: bool = True,
    size_bytes: int = 0,
    crc32c: int = 0,
) -> BatchHeader:
    """A batch as the machine sees it."""
    return BatchHeader(
        record_count=count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional and producer_id != PLAIN,
        size_bytes=size_bytes,
        crc32c=crc32c,
    )


def outcome(
    *,
    partition: int = 0,
    producer_id: int = PRODUCER,
    epoch: int = 0,
    commit: bool = True,
    coordinator_epoch: int = 1,
    current_epoch: int | None = None,
) -> Outcome:
    """A marker, or the answer to an inquiry."""
    return Outcome(
        partition=TopicPartition(ORDERS, partition),
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=commit,
        coordinator_epoch=coordinator_epoch,
        current_epoch=current_epoch,
    )


@dataclass(slots=True)
class BrokerHarness:
    """A broker; broker 1 leads partitions 0 and 1 of the topic `orders`, broker 2 leads 2."""

    limits: LogLimits = field(default_factory=LogLimits)
    now_ms: int = 1_000_000
    broker_id: int = BROKER_ID
    journal: list[tuple[int, Record]] = field(default_factory=list)
    machine: BrokerMachine = field(init=False)

    def __post_init__(self) -> None:
        self.machine = BrokerMachine(self.broker_id, self.limits)
        self.apply_metadata(image(1, topic("orders", BROKER_ID, BROKER_ID, OTHER_BROKER_ID)))

    # -- handlers ------------------------------------------------------------------------------

    def run(self, result: Result[T, Record]) -> T:
        """Append and replay the decided records."""
        for record in result.records:
            offset = len(self.journal)
            self.journal.append((offset, record))
            self.machine.replay(offset, record)
        return result.response

    def apply_metadata(self, image: ClusterImage) -> bool:
        """Take an image."""
        return self.run(self.machine.apply_metadata(image))

    def produce(self, *batches: BatchHeader, name: PartitionName | None = None) -> Appended:
        """Append to one partition; raise if it was refused."""
        request = ProducePartition(name=name or at(), batches=batches)
        (answer,) = self.run(self.machine.produce([request], now_ms=self.now_ms))
        if isinstance(answer, SemelError):
            raise answer
        return answer

    def append(
        self,
        *,
        partition: int = 0,
        producer_id: int = PRODUCER,
        epoch: int = 0,
        sequence: int = 0,
        count: int = 1,
        transactional: bool = True,
    ) -> int:
        """Append one batch; answer its base offset."""
        batch = header(
            producer_id=producer_id,
            epoch=epoch,
            sequence=sequence,
            count=count,
            transactional=transactional,
        )
        return self.produce(batch, name=at(partition)).base_offset

    def configure(self, **options: int | str) -> None:
        """Set options of the topic `orders`; their names have underscores."""
        known = self.machine.cluster.image
        assert known is not None
        (orders,) = known.topics
        given = {name.replace("_", "."): str(value) for name, value in options.items()}
        changed = replace(orders, configs=altered(orders.configs, set_=given))
        self.apply_metadata(replace(known, version=known.version + 1, topics=(changed,)))

    def delete_records(
        self, before: int | None, *, name: PartitionName | None = None, dry: bool = False
    ) -> Deleted:
        """Delete from one partition; raise if it was refused."""
        position = DeletePosition(name or at(), before)
        (answer,) = self.run(self.machine.log_starts.delete_records([position], validate_only=dry))
        if isinstance(answer, SemelError):
            raise answer
        return answer

    def retain(self) -> None:
        """Cut off expired records."""
        partitions = self.run(self.machine.led_partitions())
        self.run(self.machine.log_starts.apply_retention(partitions, now_ms=self.now_ms))

    @property
    def start_offset(self) -> int:
        """Of partition 0."""
        (listed,) = self.run(self.machine.reads.list_offsets([at()], COMMITTED))
        assert isinstance(listed, ReadPlan)
        return listed.log_start_offset

    def mark(self, *outcomes: Outcome) -> list[SemelError | None]:
        """Apply outcomes; answer why each was refused."""
        return self.run(self.machine.transactions.write_txn_markers(outcomes, now_ms=self.now_ms))

    def commit(
        self,
        *,
        partition: int = 0,
        producer_id: int = PRODUCER,
        epoch: int = 0,
        coordinator_epoch: int = 1,
    ) -> None:
        """Write a COMMIT marker, which must be taken."""
        self._end(partition, producer_id, epoch, coordinator_epoch, commit=True)

    def abort(
        self,
        *,
        partition: int = 0,
        producer_id: int = PRODUCER,
        epoch: int = 0,
        coordinator_epoch: int = 1,
    ) -> None:
        """Write an ABORT marker, which must be taken."""
        self._end(partition, producer_id, epoch, coordinator_epoch, commit=False)

    def _end(
        self, partition: int, producer_id: int, epoch: int, coordinator_epoch: int, *, commit: bool
    ) -> None:
        marker = outcome(
            partition=partition,
            producer_id=producer_id,
            epoch=epoch,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
        )
        (refusal,) = self.mark(marker)
        if refusal is not None:
            raise refusal

    def never_given(self, *, epoch: int, current_epoch: int) -> None:
        """Answer an inquiry: the epoch was never given out."""
        answer = outcome(epoch=epoch, commit=False, current_epoch=current_epoch)
        assert self.mark(answer) == [None]

    def forget(self, *, after_ms: int = 86_400_000) -> int:
        """Let time pass, and forget all that is idle then, whatever its coordinator would say."""
        self.now_ms += after_ms
        idle = [
            each
            for partition in self.run(self.machine.producers.participants())
            for each in self.run(
                self.machine.producers.idle_producers(
                    partition,
                    self.run(self.machine.producers.producer_ids(partition)),
                    now_ms=self.now_ms,
                )
            )
        ]
        return self.run(self.machine.producers.forget_producers(idle, now_ms=self.now_ms))

    def due(self) -> list[OpenTransactionAt[TopicPartition]]:
        """Return the transactions to inquire about."""
        return self.run(self.machine.transactions.transactions_to_inquire(now_ms=self.now_ms))

    def plan(
        self,
        offset: int = 0,
        *,
        isolation: IsolationLevel = COMMITTED,
        name: PartitionName | None = None,
        with_outcomes: bool = False,
    ) -> ReadPlan:
        """Return what may be read of one partition; raise if nothing may."""
        position = FetchPosition(name or at(), offset)
        reads = self.machine.reads
        (plan,) = self.run(reads.fetch([position], isolation, with_outcomes=with_outcomes))
        if isinstance(plan, SemelError):
            raise plan
        return plan

    # -- what is seen of it --------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """Of partition 0."""
        return self.plan(self.start_offset).last_stable_offset

    @property
    def end_offset(self) -> int:
        """Of partition 0."""
        return self.plan(self.start_offset).high_watermark

    def aborted_offsets(self, producer_id: int = PRODUCER, epoch: int = 0) -> list[int]:
        """Return the offsets of partition 0 at which a batch of a transaction counts as aborted."""
        plan = self.plan(self.start_offset)
        offsets = range(plan.high_watermark)
        return [offset for offset in offsets if plan.aborted.covers(producer_id, epoch, offset)]

    def entities(self) -> list[Record]:
        """Return the whole state, to compare."""
        return entities(self.machine)

    # -- other machines of the same history ----------------------------------------------------

    def replayed(self, count: int | None = None) -> BrokerMachine:
        """Return a machine made of the first records of the journal, through their bytes."""
        return rebuilt(self.limits, self.journal[:count], broker_id=self.broker_id)

    def restored(self) -> BrokerMachine:
        """Return a machine made of a snapshot, through its bytes."""
        return rebuilt(self.limits, list(self.machine.snapshot()), broker_id=self.broker_id)


def rebuilt(
    limits: LogLimits, entries: Sequence[tuple[int, Record]], *, broker_id: int = BROKER_ID
) -> BrokerMachine:
    """Return a machine made of records, as the runner makes one at start."""
    serde = BrokerSerde()
    machine = BrokerMachine(broker_id, limits)
    for offset, record in entries:
        machine.replay(offset, serde.decode(serde.encode(record)))
    return machine


def entities(machine: BrokerMachine) -> list[Record]:
    """Return the whole state of a machine."""
    return [record for _, record in machine.snapshot()]
