"""A coordinator's transaction machine as tests drive it: decide, write, read back, replay."""

from collections.abc import Sequence
from typing import TypeVar

from semel.coordinator.journal.v1 import transactions_pb2 as journal
from semel_common.ids import GroupId, Participant, TopicPartition
from semel_coordinator.transactions.journal import transaction_serde
from semel_coordinator.transactions.machine import (
    InitProducerId,
    Inquiry,
    InquiryAnswer,
    ListFilter,
    TimedOut,
    TransactionKey,
    TransactionLimits,
    TransactionListing,
    TransactionsMachine,
    TransactionsRecord,
    TransactionState,
    in_order,
)
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import (
    ClusterImage,
    Instance,
    Layout,
    Listener,
    PartitionLeader,
    ServiceRole,
    Topic,
)
from semel_runtime.machine import Result

T = TypeVar("T")

CLUSTER_ID = "test-cluster"
TIMEOUT_MS = 60_000
NOW_MS = 1_700_000_000_000

A0 = TopicPartition("topic-a", 0)
A1 = TopicPartition("topic-a", 1)
B0 = TopicPartition("topic-b", 0)
GROUP = GroupId("group-g")


def image(
    *,
    coordinators: int = 1,
    topics: Sequence[str] = ("topic-a", "topic-b"),
    version: int = 1,
    registered: bool = True,
    cluster_id: str = CLUSTER_ID,
) -> ClusterImage:
    """A cluster with two brokers; partition p of each topic is led by broker p."""
    instances = [
        Instance(
            role=role,
            instance_id=instance_id,
            listeners=(
                Listener(name="default", host=f"{role.name.lower()}-{instance_id}", port=1),
            ),
        )
        for role, count in (
            (ServiceRole.COORDINATOR, coordinators),
            (ServiceRole.BROKER, 2),
            (ServiceRole.GROUP_COORDINATOR, 1),
        )
        for instance_id in range(count)
    ]
    return ClusterImage(
        cluster_id=cluster_id,
        version=version,
        layout=Layout(
            transaction_log_partitions=10,
            coordinators=coordinators,
            group_partitions=10,
            group_coordinators=1,
        ),
        instances=tuple(instances) if registered else (),
        topics=tuple(
            Topic(
                topic_id=topic_id,
                name=f"name-of-{topic_id}",
                partitions=(PartitionLeader(0, 0), PartitionLeader(1, 0)),
            )
            for topic_id in topics
        ),
    )


def cluster_copy(cluster_image: ClusterImage | None = None) -> ClusterCopy:
    """A copy of the metadata that has seen one image."""
    cluster = ClusterCopy()
    cluster.replay(0, cluster_image or image())
    return cluster


class TransactionsSerde:
    """Of a journal that holds nothing else. Implements ``Serde``."""

    def encode(self, record: TransactionsRecord) -> bytes:
        message = journal.TransactionsRecord()
        transaction_serde.write(record, message)
        return message.SerializeToString()

    def decode(self, data: bytes) -> TransactionsRecord:
        return transaction_serde.read(journal.TransactionsRecord.FromString(data))


class TransactionsHarness:
    """Runs handlers; every record passes through bytes on its way to replay."""

    def __init__(
        self,
        *,
        instance_id: int = 0,
        coordinators: int = 1,
        limits: TransactionLimits | None = None,
        claim: bool = True,
        cluster_id: str = CLUSTER_ID,
    ) -> None:
        self.now_ms = NOW_MS
        self.serde = TransactionsSerde()
        self.journal: list[bytes] = []
        self.records: Sequence[TransactionsRecord] = ()
        """Of the last call."""
        self.verified = False
        """Whether the last call went through a commit in any case."""
        self._instance_id = instance_id
        self._limits = limits or TransactionLimits()
        self.cluster = cluster_copy(image(coordinators=coordinators, cluster_id=cluster_id))
        self.machine = self.new_machine()
        if claim:
            self.run(self.machine.claim())

    def new_machine(self) -> TransactionsMachine:
        """A machine that knows nothing yet."""
        return TransactionsMachine(
            instance_id=self._instance_id, cluster=self.cluster, limits=self._limits
        )

    def restart(self) -> None:
        """Go on from the journal."""
        self.machine = self.replayed(self.journal)

    def replayed(self, journal: Sequence[bytes]) -> TransactionsMachine:
        """A machine that has replayed a journal."""
        machine = self.new_machine()
        for offset, data in enumerate(journal):
            machine.replay(offset, self.serde.decode(data))
        return machine

    def run(self, result: Result[T, TransactionsRecord]) -> T:
        """Write and replay what a handler decided."""
        self.records, self.verified = result.records, result.verify
        for record in result.records:
            self.journal.append(self.serde.encode(record))
            self.machine.replay(len(self.journal) - 1, self.serde.decode(self.journal[-1]))
        return result.response

    def listed(self, wanted: ListFilter) -> list[TransactionListing]:
        """Return what a list names, by the three questions that the service asks for one."""
        queries = self.machine.queries
        names, producer_ids = self.run(queries.list_candidates(wanted))
        every = dict.fromkeys([*names, *self.run(queries.names_of(producer_ids))])
        return self.run(queries.list_transactions(every, wanted, now_ms=self.now_ms))

    # -- requests ------------------------------------------------------------------------------

    def init(
        self,
        transactional_id: str = "app",
        instance: str = "one",
        number: int = 1,
        *,
        keep_prepared: bool = False,
    ) -> TransactionKey:
        """InitProducerId."""
        call = InitProducerId(
            transactional_id=transactional_id,
            instance_id=instance,
            init_number=number,
            timeout_ms=TIMEOUT_MS,
            keep_prepared=keep_prepared,
        )
        return self.run(self.machine.init_producer_id(call, now_ms=self.now_ms))

    def add(
        self, key: TransactionKey, *participants: Participant, transactional_id: str = "app"
    ) -> None:
        """AddPartitionsToTxn, or AddOffsetsToTxn."""
        self.run(
            self.machine.add_partitions_to_txn(
                transactional_id, key, participants, traceparent="of add", now_ms=self.now_ms
            )
        )

    def commit(
        self,
        key: TransactionKey,
        participants: Sequence[Participant] | None = None,
        *,
        transactional_id: str = "app",
    ) -> TransactionKey:
        """EndTxn(commit)."""
        return self._end(key, participants, transactional_id, commit=True)

    def abort(
        self,
        key: TransactionKey,
        participants: Sequence[Participant] | None = None,
        *,
        transactional_id: str = "app",
    ) -> TransactionKey:
        """EndTxn(abort)."""
        return self._end(key, participants, transactional_id, commit=False)

    def prepare(
        self,
        key: TransactionKey,
        participants: Sequence[Participant] | None = None,
        *,
        transactional_id: str = "app",
    ) -> TransactionKey:
        """PrepareTxn."""
        return self.run(
            self.machine.prepare_txn(
                transactional_id,
                key,
                participants=None if participants is None else in_order(participants),
                traceparent="of prepare",
                now_ms=self.now_ms,
            )
        )

    def complete_prepared(
        self,
        key: TransactionKey,
        producer_epoch: int | None = None,
        *,
        commit: bool = True,
        transactional_id: str = "app",
    ) -> None:
        """CompletePreparedTxn."""
        self.run(
            self.machine.complete_prepared_txn(
                transactional_id,
                key,
                commit=commit,
                producer_epoch=producer_epoch,
                traceparent="of completion",
                now_ms=self.now_ms,
            )
        )

    def inquire(self, *asked: tuple[TransactionKey, Participant]) -> Sequence[InquiryAnswer]:
        """InquireTransactions."""
        inquiries = [Inquiry(key=key, participant=participant) for key, participant in asked]
        return self.run(self.machine.inquire_transactions(inquiries, now_ms=self.now_ms))

    def complete(self, *keys: TransactionKey) -> None:
        """Note that all markers were acknowledged."""
        self.run(self.machine.markers.complete_txn(keys, now_ms=self.now_ms))

    def tick(self, *, after_ms: int = 0) -> tuple[TimedOut, ...]:
        """Let time pass."""
        self.now_ms += after_ms
        return self.run(self.machine.tick(self.now_ms))

    def expire(self, *, after_ms: int = 0) -> tuple[str, ...]:
        """Forget transactional ids that are idle after some time."""
        self.now_ms += after_ms
        producer_ids = self.run(self.machine.expiry.producer_ids())
        return self.run(
            self.machine.expiry.expire_transactional_ids(producer_ids, now_ms=self.now_ms)
        )

    def states(self, transactional_id: str = "app") -> list[TransactionState]:
        """The states of an id's transactions that are not complete, the oldest first."""
        (described,) = self.run(self.machine.queries.describe_transactions([transactional_id]))
        assert described.error is None, described.error
        return [transaction.state for transaction in described.transactions]

    def _end(
        self,
        key: TransactionKey,
        participants: Sequence[Participant] | None,
        transactional_id: str,
        *,
        commit: bool,
    ) -> TransactionKey:
        return self.run(
            self.machine.end_txn(
                transactional_id,
                key,
                commit=commit,
                participants=None if participants is None else in_order(participants),
                traceparent="of end",
                now_ms=self.now_ms,
            )
        )


def after(key: TransactionKey, epochs: int = 1) -> TransactionKey:
    """The producer's transaction some epochs later, or earlier."""
    return TransactionKey(key.producer_id, key.producer_epoch + epochs)


def state_of(machine: TransactionsMachine) -> list[bytes]:
    """All of a machine's state, in its order; as bytes, because sets are equal in any order."""
    encode = TransactionsSerde().encode
    return [encode(record) for _, record in machine.snapshot()]
