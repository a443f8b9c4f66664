"""A group coordinator's machine in five-line scenarios: decide, write, replay, as a runner does."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from semel_common.errors import SemelError
from semel_common.ids import GroupId, InternalTopic, TopicPartition, partition_for_id
from semel_group.journal import GroupSerde
from semel_group.machine import GroupLimits, GroupMachine
from semel_group.machine.records import Record
from semel_group.machine.values import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    Committer,
    FetchedOffset,
    FetchedOffsets,
    GroupDescription,
    GroupListing,
    Heartbeat,
    HeartbeatAnswer,
    MemberKey,
    NamedPartition,
    NewOffset,
    RefusedMarker,
    RefusedOffset,
    TopicName,
    Transaction,
    TransactionResult,
    TxnMarker,
)
from semel_runtime.cluster.metadata_image import (
    ClusterImage,
    Instance,
    InternalPartition,
    Layout,
    Listener,
    PartitionLeader,
    ServiceRole,
    Topic,
)
from semel_runtime.machine import Result
from semel_runtime.participant.inquiry import InquiryAnswer, InquiryOutcome, OpenTransactionAt

T = TypeVar("T")

GROUP = "group"
CLUSTER_ID = "cluster"
PRODUCER_ID = (7 << 48) | 5
COMMIT, ABORT = TransactionResult.COMMIT, TransactionResult.ABORT
START_MS = 1_000_000


def image(
    topics: Mapping[str, int],
    *,
    version: int = 1,
    group_coordinators: int = 1,
    leader: PartitionLeader | None = None,
) -> ClusterImage:
    """Return a cluster with topics of so many partitions; a topic's id is ``<name>-id``.

    ``leader``: who leads the partition of the group; None: the layout says.
    """
    moved = InternalTopic.CONSUMER_OFFSETS, partition_for_id(GROUP, 50)
    return ClusterImage(
        cluster_id=CLUSTER_ID,
        version=version,
        layout=Layout(
            transaction_log_partitions=50,
            coordinators=2,
            group_partitions=50,
            group_coordinators=group_coordinators,
        ),
        instances=tuple(
            Instance(
                role=ServiceRole.COORDINATOR,
                instance_id=each,
                listeners=(Listener(name="default", host=f"coordinator-{each}", port=1),),
            )
            for each in range(2)
        ),
        topics=tuple(
            Topic(
                topic_id=f"{name}-id",
                name=name,
                partitions=tuple(PartitionLeader(0, 0) for _ in range(count)),
            )
            for name, count in sorted(topics.items())
        ),
        internal_partitions=(
            (InternalPartition(topic=moved[0], partition=moved[1], leader=leader),)
            if leader
            else ()
        ),
    )


def partitions(topic: str, *numbers: int) -> frozenset[TopicPartition]:
    """Return partitions of a topic."""
    return frozenset(TopicPartition(f"{topic}-id", number) for number in numbers)


def orders(*numbers: int) -> frozenset[TopicPartition]:
    """Return partitions of the topic ``orders``."""
    return partitions("orders", *numbers)


class GroupHarness:
    """One machine with the journal that it wrote. Every record goes through the serde."""

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        *,
        limits: GroupLimits | None = None,
        group_coordinators: int = 1,
        instance_id: int = 0,
    ) -> None:
        self.limits = limits or GroupLimits()
        self.instance_id = instance_id
        self.machine = GroupMachine(instance_id, self.limits)
        self.journal: list[Record] = []
        self.now_ms = START_MS
        self._group_coordinators = group_coordinators
        self._named = {"orders": 4} if topics is None else topics
        self._leader: PartitionLeader | None = None
        self._serde = GroupSerde()
        self._epochs: dict[tuple[str, str], int] = {}
        self.topics(self._named)

    def run(self, result: Result[T, Record]) -> T:
        """Write and replay the decided records."""
        for record in result.records:
            written = self._serde.decode(self._serde.encode(record))
            assert written == record
            self.machine.replay(len(self.journal), written)
            self.journal.append(written)
        return result.response

    def written(self, since: int) -> list[Record]:
        """Return the records written from a journal offset on."""
        return self.journal[since:]

    def topics(self, topics: Mapping[str, int]) -> None:
        """Let the cluster have these topics."""
        self._named = topics
        self.run(self.machine.update_cluster(self.next_image()))

    def next_image(self) -> ClusterImage:
        """Return the cluster as it is now, under the next version."""
        known = self.machine.cluster.image
        return image(
            self._named,
            version=1 if known is None else known.version + 1,
            group_coordinators=self._group_coordinators,
            leader=self._leader,
        )

    def led(self, leader: PartitionLeader) -> None:
        """Let the partition of the group be led, and move, as this says."""
        self._leader = leader
        self.topics(self._named)

    # -- membership ------------------------------------------------------------------------------

    def join(
        self,
        member_id: str,
        *topics: str,
        instance_id: str = "",
        takes_over: bool = False,
        assignor: str = "",
        group_id: str = GROUP,
    ) -> HeartbeatAnswer:
        """Let a member join, reading ``orders`` unless it says otherwise."""
        return self.heartbeat(
            member_id,
            0,
            topics=frozenset(topics or {"orders"}),
            owned=(),
            timeout_ms=60_000,
            instance_id=instance_id,
            takes_over=takes_over,
            assignor=assignor,
            group_id=group_id,
        )

    def heartbeat(  # noqa: PLR0913 - what a heartbeat says, all of it named
        self,
        member_id: str,
        epoch: int | None = None,
        *,
        owned: Collection[TopicPartition] | None = None,
        topics: Collection[str] | None = None,
        timeout_ms: int | None = None,
        instance_id: str = "",
        takes_over: bool = False,
        assignor: str = "",
        overdue: Collection[TopicPartition] = (),
        is_back: bool = False,
        group_id: str = GROUP,
    ) -> HeartbeatAnswer:
        """Let a member speak, at the epoch that it was given last unless another is said."""
        spoken = self._epochs.get((group_id, member_id), 0) if epoch is None else epoch
        heartbeat = Heartbeat(
            group_id=group_id,
            member_id=member_id,
            member_epoch=spoken,
            instance_id=instance_id,
            takes_over=takes_over,
            rebalance_timeout_ms=timeout_ms,
            subscribed_topics=None if topics is None else frozenset(topics),
            owned=None if owned is None else frozenset(owned),
            server_assignor=assignor,
            overdue=frozenset(overdue),
            is_back=is_back,
            arrived_ms=self.now_ms,
        )
        answer = self.run(self.machine.consumer_group_heartbeat(heartbeat))
        self._epochs[group_id, member_id] = answer.member_epoch
        return answer

    def leave(self, member_id: str, group_id: str = GROUP) -> HeartbeatAnswer:
        """Let a member leave."""
        return self.heartbeat(member_id, LEAVE_EPOCH, group_id=group_id)

    def leave_for_a_while(self, member_id: str, instance_id: str) -> HeartbeatAnswer:
        """Let a static member leave."""
        return self.heartbeat(member_id, STATIC_LEAVE_EPOCH, instance_id=instance_id)

    def expire(self, member_id: str, group_id: str = GROUP) -> bool:
        """Let a member's time be over."""
        return self.run(
            self.machine.expire_member(MemberKey(group_id, member_id), now_ms=self.now_ms)
        )

    def epoch(self, member_id: str, group_id: str = GROUP) -> int:
        """Return the epoch that a member was given last."""
        return self._epochs[group_id, member_id]

    def held(self, member_id: str, group_id: str = GROUP) -> frozenset[TopicPartition]:
        """Return what a member may be using."""
        return frozenset(self.machine.membership.groups[group_id].members[member_id].held)

    # -- offsets ---------------------------------------------------------------------------------

    def member(self, member_id: str, epoch: int | None = None, group_id: str = GROUP) -> Committer:
        """Return a member as a committer, at the epoch that it was given last."""
        spoken = self.epoch(member_id, group_id) if epoch is None else epoch
        return Committer(group_id=group_id, member_id=member_id, member_epoch=spoken)

    def commit(
        self, offsets: Mapping[int, int], by: Committer | None = None, *, metadata: str = ""
    ) -> tuple[RefusedOffset, ...]:
        """Commit offsets of ``orders``, by partition."""
        committer, sent = by or Committer(group_id=GROUP), new_offsets(offsets, metadata)
        return self.run(
            self.machine.committed_offsets.commit_offsets(committer, sent, now_ms=self.now_ms)
        )

    def txn_commit(
        self,
        offsets: Mapping[int, int],
        by: Committer | None = None,
        *,
        epoch: int = 0,
        sequence: int = 0,
        producer_id: int = PRODUCER_ID,
        metadata: str = "",
    ) -> None:
        """Commit offsets of ``orders`` in a transaction."""
        self.run(
            self.machine.committed_offsets.txn_offset_commit(
                by or Committer(group_id=GROUP),
                Transaction(producer_id, epoch),
                sequence,
                new_offsets(offsets, metadata),
                now_ms=self.now_ms,
            )
        )

    def marker(
        self,
        result: TransactionResult,
        *,
        epoch: int = 0,
        producer_id: int = PRODUCER_ID,
        coordinator_epoch: int = 1,
        groups: Sequence[str] = (GROUP,),
    ) -> tuple[RefusedMarker, ...]:
        """End a transaction."""
        marker = txn_marker(
            result,
            epoch=epoch,
            producer_id=producer_id,
            coordinator_epoch=coordinator_epoch,
            groups=groups,
        )
        transactions = self.machine.transactions
        (refused,) = self.run(
            transactions.write_txn_markers(CLUSTER_ID, [marker], now_ms=self.now_ms)
        )
        return refused

    def answer(
        self,
        outcome: InquiryOutcome,
        *,
        epoch: int = 0,
        producer_id: int = PRODUCER_ID,
        coordinator_epoch: int = 1,
        current_epoch: int = 0,
    ) -> bool:
        """Apply an inquiry's answer; return whether it ended the transaction."""
        answer = InquiryAnswer(
            transaction=OpenTransactionAt(GroupId(GROUP), producer_id, epoch),
            outcome=outcome,
            coordinator_epoch=coordinator_epoch,
            current_epoch=current_epoch,
        )
        transactions = self.machine.transactions
        return bool(self.run(transactions.apply_inquiry_answers([answer], now_ms=self.now_ms)))

    def forget(self, *, after_ms: int = 86_400_000) -> int:
        """Let time pass, and forget all that is idle then, whatever its coordinator would say."""
        self.now_ms += after_ms
        producers, now_ms = self.machine.producers, self.now_ms
        idle = [
            each
            for participant in self.run(producers.participants())
            for known in [self.run(producers.producer_ids(participant))]
            for each in self.run(producers.idle_producers(participant, known, now_ms=now_ms))
        ]
        return self.run(producers.forget_producers(idle, now_ms=now_ms))

    def fetch(
        self,
        *numbers: int,
        stable: bool = False,
        by: Committer | None = None,
        topic: TopicName | None = None,
    ) -> FetchedOffsets:
        """Fetch offsets of ``orders``; without partitions, all offsets."""
        name = topic or TopicName("orders", "")
        asked = [NamedPartition(name, number) for number in numbers] or None
        reader = by or Committer(group_id=GROUP)
        offsets = self.machine.committed_offsets
        return self.run(offsets.fetch_offsets(reader, asked, require_stable=stable))

    def committed(self, number: int) -> int:
        """Return the committed offset of one partition of ``orders``."""
        (offset,) = self.fetch(number).offsets
        return offset.committed_offset

    def to_inquire(self, awaited: Collection[OpenTransactionAt[GroupId]] = ()) -> list[int]:
        """Return the epochs of the transactions that are to be asked about."""
        transactions = self.machine.transactions
        due = self.run(transactions.transactions_to_inquire(awaited, now_ms=self.now_ms))
        return [each.producer_epoch for each in due]

    # -- operators -------------------------------------------------------------------------------

    def describe(self, group_id: str = GROUP) -> GroupDescription | SemelError:
        """Describe one group."""
        (description,) = self.run(self.machine.groups.describe_groups([group_id]))
        return description

    def list(self) -> tuple[GroupListing, ...]:
        """List all groups."""
        return self.run(self.machine.groups.list_groups(self.machine.groups.group_ids()))

    def delete_offsets(self, *numbers: int, group_id: str = GROUP) -> tuple[RefusedOffset, ...]:
        """Delete offsets of ``orders``."""
        asked = [NamedPartition(TopicName("orders", ""), number) for number in numbers]
        return self.run(self.machine.deletion.delete_offsets(group_id, asked))

    def delete(self, *group_ids: str) -> Sequence[str]:
        """Delete groups; return the error of each, or an empty text."""
        refused = self.run(self.machine.deletion.delete_groups(group_ids or [GROUP]))
        return [each.code.name if each else "" for each in refused]

    def expire_offsets(self, offsets_max: int = 100) -> int:
        """Forget what has expired by now."""
        group_ids, deletion = self.machine.groups.group_ids(), self.machine.deletion
        return self.run(deletion.expire_offsets(group_ids, offsets_max, now_ms=self.now_ms))

    def forget_deleted_topics(self, offsets_max: int = 100) -> int:
        """Forget offsets of topics that are gone."""
        group_ids, deletion = self.machine.groups.group_ids(), self.machine.deletion
        return self.run(deletion.remove_deleted_topics(group_ids, offsets_max))


def new_offsets(offsets: Mapping[int, int], metadata: str = "") -> list[NewOffset]:
    """Return offsets of ``orders``, by partition."""
    return [
        NewOffset(
            topic=TopicName("orders", ""),
            partition=partition,
            committed_offset=committed_offset,
            metadata=metadata,
        )
        for partition, committed_offset in offsets.items()
    ]


def txn_marker(
    result: TransactionResult,
    *,
    epoch: int = 0,
    producer_id: int = PRODUCER_ID,
    coordinator_epoch: int = 1,
    groups: Sequence[str] = (GROUP,),
) -> TxnMarker:
    """Return a marker."""
    return TxnMarker(
        transaction=Transaction(producer_id, epoch),
        result=result,
        coordinator_epoch=coordinator_epoch,
        group_ids=tuple(groups),
    )


def codes(offsets: Iterable[FetchedOffset | RefusedOffset | RefusedMarker]) -> list[str]:
    """Return the error of each, or an empty text."""
    return [offset.error.code.name if offset.error else "" for offset in offsets]


def rebuilt(
    records: Iterable[tuple[int, Record]], limits: GroupLimits, instance_id: int = 0
) -> GroupMachine:
    """Return a machine made of records at their journal offsets."""
    machine = GroupMachine(instance_id, limits)
    for offset, record in records:
        machine.replay(offset, record)
    return machine


def state_of(machine: GroupMachine) -> tuple[object, ...]:
    """Return everything that a machine knows, for comparing."""
    return (
        machine.cluster.image,
        machine.membership.groups,
        machine.membership._epochs_given,
        machine.offsets._groups,
        tuple(machine.offsets.coordinator_epochs.snapshot()),
        machine.offsets._pending,
        machine.moves._handed_over,
        machine.moves._taken_over,
    )
