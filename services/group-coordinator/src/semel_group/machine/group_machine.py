"""The group coordinator's machine: membership, offsets, and the copy of the cluster's metadata.

Theory of operation. Three machines share one journal, and none of them knows another; this one
passes each request to the machines in question, once it is sure that this instance is in charge of
the group. Handlers decide, ``replay`` changes; see ``semel_runtime.machine``.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice

from semel_common.errors import (
    CoordinatorNotAvailableError,
    GroupIdNotFoundError,
    InconsistentClusterIdError,
    SemelError,
)
from semel_common.ids import GroupId, TopicPartition
from semel_group.machine.deletion import GroupDeletion
from semel_group.machine.gauges import GroupStanding, standing
from semel_group.machine.group_descriptions import described, listed
from semel_group.machine.limits import GroupLimits
from semel_group.machine.membership.membership_machine import MembershipMachine
from semel_group.machine.moves import GroupMoves, known_of, taken_over
from semel_group.machine.offset_commits import Admission, check_current, checksum, distinct
from semel_group.machine.offset_fetch import OffsetsPage, fetch_all, fetch_named, holders
from semel_group.machine.offsets.offsets_machine import OffsetsMachine
from semel_group.machine.records import (
    ConsumerGroup,
    GroupDeleted,
    GroupsForgotten,
    GroupsHandedOver,
    GroupsServed,
    GroupsTakenOver,
    Member,
    MemberEpochsGiven,
    MemberRemoved,
    OffsetCommitted,
    OffsetRemoved,
    Record,
    TxnOffsetsCommitted,
)
from semel_group.machine.topics import Topics
from semel_group.machine.transaction_outcomes import apply_inquiry_answers, write_txn_markers
from semel_group.machine.values import (
    Committer,
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
    Transaction,
    TxnMarker,
)
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.machine import Result
from semel_runtime.moving.move_state import Arrival, PartitionMove
from semel_runtime.participant.inquiry import (
    InquiryAnswer,
    OpenCursor,
    OpenSince,
    OpenTransactionAt,
    oldest,
)
from semel_runtime.participant.producer_expiry import IdleProducer


class GroupMachine:
    """Everything that one group coordinator knows."""

    def __init__(self, instance_id: int, limits: GroupLimits) -> None:
        """Start empty."""
        self._limits = limits
        self.cluster = ClusterCopy()
        self.topics = Topics(self.cluster)
        self.membership = MembershipMachine(limits, self.topics.named)
        self.offsets = OffsetsMachine(limits)
        self.moves = GroupMoves(instance_id, self.cluster)
        self._deletion = GroupDeletion(limits, self.membership, self.offsets, self.topics)

    # -- membership ------------------------------------------------------------------------------

    def consumer_group_heartbeat(self, heartbeat: Heartbeat) -> Result[HeartbeatAnswer, Record]:
        """See ``MembershipMachine.consumer_group_heartbeat``."""
        self.moves.check_in_charge(heartbeat.group_id)
        return self.membership.consumer_group_heartbeat(heartbeat)

    def expire_member(self, key: MemberKey, *, now_ms: int) -> Result[bool, Record]:
        """Remove a member that was silent or slow for too long. Answers whether it was there."""
        if not self.moves.is_served(key.group_id):
            return Result(False)
        return self.membership.remove_member(key, now_ms=now_ms)

    # -- offsets ---------------------------------------------------------------------------------

    def commit_offsets(
        self, committer: Committer, offsets: Sequence[NewOffset], *, now_ms: int
    ) -> Result[tuple[RefusedOffset, ...], Record]:
        """Commit offsets at once, each for itself. Answers the refused ones.

        Raises, for all of them, GroupIdNotFoundError, UnknownMemberIdError, StaleMemberEpochError,
        and InvalidRequestError for a partition named twice.
        """
        self.moves.check_in_charge(committer.group_id)
        admission = self._admission(committer, now_ms)
        admitted: list[OffsetCommitted] = []
        refused: list[RefusedOffset] = []
        for offset in offsets:
            try:
                admitted.append(admission.admit(offset))
            except SemelError as error:
                value = error.as_value()
                refused.append(
                    RefusedOffset(topic=offset.topic, partition=offset.partition, error=value)
                )
        records = self.offsets.commit_offsets(committer.group_id, distinct(admitted)).records
        return Result(tuple(refused), records)

    def txn_offset_commit(
        self,
        committer: Committer,
        transaction: Transaction,
        base_sequence: int,
        offsets: Sequence[NewOffset],
        *,
        now_ms: int,
    ) -> Result[None, Record]:
        """Hold offsets for a transaction, all or none; a repeat holds nothing again.

        Raises the errors and refusals of ``commit_offsets``, and the refusals of a producer.
        """
        self.moves.check_in_charge(committer.group_id)
        self.cluster.check_producer_id(transaction.producer_id)
        sent = checksum(offsets)
        if self.offsets.is_repeat(committer.group_id, transaction, base_sequence, crc32c=sent):
            return Result(None)
        admission = self._admission(committer, now_ms)
        commit = TxnOffsetsCommitted(
            group_id=committer.group_id,
            **transaction._asdict(),
            base_sequence=base_sequence,
            start_time_ms=now_ms,
            offsets=distinct([admission.admit(offset) for offset in offsets]),
            crc32c=sent,
        )
        return self.offsets.txn_offset_commit(commit)

    def fetch_offsets(
        self,
        reader: Committer,
        asked: Iterable[NamedPartition] | None,
        *,
        require_stable: bool,
        page: OffsetsPage | None = None,
    ) -> Result[FetchedOffsets, Record]:
        """Answer committed offsets; a page of all present ones, if the request names none.

        A reader with a member id must be that member at its current epoch, else
        UnknownMemberIdError or StaleMemberEpochError.
        """
        self.moves.check_in_charge(reader.group_id)
        if reader.member_id:
            self._check_reader(reader)
        group = self.offsets.group(reader.group_id)
        held = holders(reader.group_id, group) if require_stable else {}
        if asked is None:
            return Result(fetch_all(group, held, self.topics, page))
        return Result(fetch_named(group, held, self.topics, asked))

    def remove_deleted_topics(
        self, group_ids: Iterable[str], offsets_max: int
    ) -> Result[int, Record]:
        """Forget offsets of topics that are gone, so many at most. Answers how many it were."""
        if self.cluster.image is None:
            return Result(0)
        gone = (
            OffsetRemoved(group_id=group_id, partition=partition)
            for group_id in self.moves.served(group_ids)
            for partition in self.offsets.group(group_id).partitions()
            if not self.topics.exists(partition.topic_id)
        )
        records = tuple(islice(gone, offsets_max))
        return Result(len(records), records)

    # -- outcomes --------------------------------------------------------------------------------

    def write_txn_markers(
        self, cluster_id: str, markers: Sequence[TxnMarker], *, now_ms: int
    ) -> Result[tuple[tuple[RefusedMarker, ...], ...], Record]:
        """End transactions; a repeat ends nothing again. Answers, marker by marker, who refused.

        Raises InconsistentClusterIdError, and CoordinatorNotAvailableError before the first image.
        """
        self._check_cluster(cluster_id)
        return write_txn_markers(self.offsets, self.moves, markers, now_ms=now_ms)

    def apply_inquiry_answers(
        self, answers: Sequence[InquiryAnswer[GroupId]], *, now_ms: int
    ) -> Result[tuple[InquiryAnswer[GroupId], ...], Record]:
        """Do as coordinators answered. Answers which answers ended a transaction."""
        return apply_inquiry_answers(self.offsets, self.moves, answers, now_ms=now_ms)

    def transactions_to_inquire(
        self, awaited: Collection[OpenTransactionAt[GroupId]] = (), *, now_ms: int
    ) -> Result[tuple[OpenTransactionAt[GroupId], ...], Record]:
        """Return the open transactions whose coordinators are to be asked.

        ``awaited`` are transactions that a call waits for: those that are still open are due.
        """
        due = {*self.offsets.transactions_to_inquire(now_ms)}
        due.update(each for each in awaited if self.offsets.is_open(each))
        return Result(tuple(sorted(filter(self._is_served, due))))

    def open_transactions(
        self, *, open_since_ms: int, limit: int, after: OpenCursor | None = None
    ) -> Result[list[OpenSince[GroupId]], Record]:
        """Return the transactions that have been open since a time or longer, the oldest first."""
        found = (it for it in self.offsets.open_transactions() if self._is_served(it.transaction))
        return Result(oldest(found, open_since_ms=open_since_ms, limit=limit, after=after))

    def has_open_transactions(self) -> bool:
        """Whether any transaction is open here."""
        return self.offsets.has_open_transactions()

    # -- idle producers --------------------------------------------------------------------------

    def participants(self) -> Result[Sequence[GroupId], Record]:
        """Return all groups, to look for idle producers in one after the other."""
        return Result([*map(GroupId, self.moves.served(self.offsets.known_group_ids()))])

    def producer_ids(self, participant: GroupId) -> Result[Sequence[int], Record]:
        """Return the producers that a group knows."""
        return Result(list(self.offsets.group(participant.group_id).producers))

    def idle_producers(
        self, participant: GroupId, producer_ids: Sequence[int], *, now_ms: int
    ) -> Result[list[IdleProducer[GroupId]], Record]:
        """Return the idle ones of the producers that a group knew."""
        return Result(self.offsets.idle_producers(participant, producer_ids, now_ms=now_ms))

    def forget_producers(
        self, idle: Sequence[IdleProducer[GroupId]], *, now_ms: int
    ) -> Result[int, Record]:
        """See ``OffsetsMachine.forget_producers``."""
        here = [each for each in idle if self.moves.is_served(each.participant.group_id)]
        return self.offsets.forget_producers(here, now_ms=now_ms)

    # -- operators -------------------------------------------------------------------------------

    def list_candidates(self) -> Result[Sequence[str], Record]:
        """Return the groups to be given to ``list_groups``, in pieces, in no order."""
        return Result(list({*self.membership.groups, *self.offsets.group_ids()}))

    def list_groups(self, group_ids: Iterable[str]) -> Result[tuple[GroupListing, ...], Record]:
        """List those of some groups that are there and served here, in the order given."""
        groups = self.membership.groups
        served = filter(self._exists, self.moves.served(group_ids))
        return Result(tuple(listed(each, groups.get(each)) for each in served))

    def group_ids(self) -> list[str]:
        """Return all groups of this instance."""
        return sorted(self.moves.served({*self.membership.groups, *self.offsets.group_ids()}))

    def standing(self) -> Iterator[GroupStanding]:
        """Yield how groups stand now, durable or not: for people, not for clients."""
        return standing(self.group_ids(), self.membership, self.offsets)

    def committed_offsets(self, group_id: str) -> Iterator[tuple[TopicPartition, int]]:
        """Yield where a group stands now, likewise."""
        for partition, (_, committed) in self.offsets.group(group_id).committed.items():
            yield partition, committed.committed_offset

    def describe_groups(
        self, group_ids: Sequence[str]
    ) -> Result[tuple[GroupDescription | SemelError, ...], Record]:
        """Describe groups, in the order given; of each, why not."""
        return Result(tuple(self._described(each) for each in group_ids))

    def delete_offsets(
        self, group_id: str, asked: Iterable[NamedPartition]
    ) -> Result[tuple[RefusedOffset, ...], Record]:
        """See ``GroupDeletion.delete_offsets``. Raises GroupIdNotFoundError."""
        self.moves.check_in_charge(group_id)
        if not self._exists(group_id):
            raise _no_such_group(group_id)
        return self._deletion.delete_offsets(group_id, asked)

    def delete_groups(
        self, group_ids: Sequence[str]
    ) -> Result[tuple[SemelError | None, ...], Record]:
        """Forget groups with their offsets. Answers for each, in the order given, why not."""
        refused: list[SemelError | None] = []
        records: list[Record] = []
        for group_id in group_ids:
            try:
                self.moves.check_in_charge(group_id)
                if not self._exists(group_id):
                    raise _no_such_group(group_id)
                records.append(self._deletion.delete_group(group_id))
                refused.append(None)
            except SemelError as error:
                refused.append(error.as_value())
        return Result(tuple(refused), tuple(records))

    def expire_offsets(
        self, group_ids: Iterable[str], offsets_max: int, *, now_ms: int
    ) -> Result[int, Record]:
        """See ``GroupDeletion.expire``: so many records at most. Answers how many it were."""
        served = self.moves.served(group_ids)
        records = tuple(islice(self._deletion.expire(served, now_ms), offsets_max))
        return Result(len(records), records)

    # -- metadata --------------------------------------------------------------------------------

    def update_cluster(self, image: ClusterImage) -> Result[bool, Record]:
        """Take a newer image; see ``ClusterCopy.update``."""
        updated = self.cluster.update(image)
        moved = self.moves.follow(image) if updated.records else ()
        return Result(updated.response, (*updated.records, *moved))

    # -- moving partitions of groups ---------------------------------------------------------------

    def hand_over(self, move: PartitionMove) -> Result[None, Record]:
        """Serve the groups of a partition no more; see moves.py."""
        return self.moves.hand_over(move)

    def handed_over(self, move: PartitionMove) -> tuple[Record, ...]:
        """Return all that is known of groups that were handed over: it does not change."""
        return known_of(self._groups_in(move.partition), self.membership, self.offsets)

    def arrivals(self) -> Result[list[Arrival], Record]:
        """Return the partitions of groups that move here."""
        return Result(self.moves.arrivals())

    def begin_take_over(self, move: PartitionMove) -> Result[None, Record]:
        """Know nothing yet of groups that move here. Raises FencedLeaderEpochError."""
        return self.moves.begin_take_over(move)

    def take_over(
        self, move: PartitionMove, known: Sequence[Record], *, whole: bool, now_ms: int
    ) -> Result[None, Record]:
        """Take the next piece of the handed-over state; see ``moves.taken_over``."""
        here = (self.moves, self.membership, self.offsets)
        return Result(None, (*taken_over(*here, move, known, whole=whole, now_ms=now_ms),))

    def members_in(self, partition: int) -> list[MemberKey]:
        """Return the members of all groups of a partition."""
        members = self.membership.members()
        return [key for key in members if self.moves.partition_of(key.group_id) == partition]

    # -- an older volume -------------------------------------------------------------------------

    def raise_epochs(self, image: ClusterImage, floor: int, *, now_ms: int) -> Result[None, Record]:
        """See ``MembershipMachine.raise_epochs``; then take the cluster's image.

        What moves away by it counts as handed over: it may have been, after the copy was made.
        """
        raised = self.membership.raise_epochs(floor, now_ms=now_ms)
        newer = self.update_cluster(image).records
        return Result(None, (*raised, *newer, *self.moves.leaving(image)))

    # -- replay ----------------------------------------------------------------------------------

    def replay(self, offset: int, record: Record) -> None:
        """Apply one record."""
        match record:
            case ClusterImage():
                self.cluster.replay(offset, record)
            case ConsumerGroup() | Member() | MemberRemoved():
                self.membership.replay(offset, record)
            case MemberEpochsGiven():
                self.membership.replay(offset, record)
            case GroupDeleted():
                self.membership.replay(offset, record)
                self.offsets.replay(offset, record)
            case GroupsForgotten():
                for group_id in self._groups_in(record.partition):
                    self.membership.forget(group_id)
                    self.offsets.forget(group_id)
                self.moves.replay(offset, record)
            case GroupsHandedOver() | GroupsTakenOver() | GroupsServed():
                self.moves.replay(offset, record)
            case _:
                self.offsets.replay(offset, record)

    def snapshot(self) -> Iterable[tuple[int, Record]]:
        """Return records that make the same state."""
        return chain(
            self.cluster.snapshot(),
            tuple(self.membership.snapshot()),
            self.offsets.snapshot(),
            tuple(self.moves.snapshot()),
        )

    # -- checks ----------------------------------------------------------------------------------

    def _groups_in(self, partition: int) -> list[str]:
        known = {*self.membership.groups, *self.offsets.known_group_ids()}
        return sorted(each for each in known if self.moves.partition_of(each) == partition)

    def _is_served(self, transaction: OpenTransactionAt[GroupId]) -> bool:
        return self.moves.is_served(transaction.participant.group_id)

    def _check_cluster(self, cluster_id: str) -> None:
        known = self.cluster.cluster_id
        if not known:
            raise CoordinatorNotAvailableError("this instance does not know its cluster yet")
        if cluster_id != known:
            raise InconsistentClusterIdError(
                f"this instance belongs to cluster {known}, not to {cluster_id!r}"
            )

    def _check_reader(self, reader: Committer) -> None:
        check_current(reader, self._committing_member(reader))

    def _admission(self, committer: Committer, now_ms: int) -> Admission:
        return Admission(
            committer=committer,
            member=self._committing_member(committer),
            topics=self.topics,
            metadata_max_bytes=self._limits.offset_metadata_max_bytes,
            commit_time_ms=now_ms,
        )

    def _committing_member(self, committer: Committer) -> Member | None:
        if committer.member_id and not self._exists(committer.group_id):
            raise _no_such_group(committer.group_id)
        return self.membership.committing_member(committer)

    def _exists(self, group_id: str) -> bool:
        return group_id in self.membership.groups or not self.offsets.group(group_id).is_empty

    def _described(self, group_id: str) -> GroupDescription | SemelError:
        try:
            self.moves.check_in_charge(group_id)
        except SemelError as error:
            return error.as_value()
        if not self._exists(group_id):
            return _no_such_group(group_id)
        group = self.membership.groups.get(group_id)
        return described(group_id, group, self.offsets.group(group_id))


def _no_such_group(group_id: str) -> GroupIdNotFoundError:
    return GroupIdNotFoundError(f"there is no group {group_id!r}")
