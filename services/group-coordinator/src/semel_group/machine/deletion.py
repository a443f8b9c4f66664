"""What groups forget: when they are told to, and by themselves after a while (KIP-211, KIP-496).

Theory of operation. An offset is kept for as long as a member reads its topic, and from then on, or
from its commit if that was later, for the retention time. So a group that stands still for a while
loses nothing, however long ago it committed last. What an open transaction holds a position in is
kept too. A group that has neither members nor offsets is forgotten.

An operator's deletion is like a commit of nothing, at its place in the journal: it removes what
open transactions hold as well, because that is older, and would be moved over by it anyway.

Kafka counts from the commit alone in groups of KIP-848, so that the offsets of an idle group may
expire the moment its last member has gone.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from semel_common.errors import GroupSubscribedToTopicError, NonEmptyGroupError, SemelError
from semel_common.ids import TopicPartition
from semel_group.machine.groups import Groups
from semel_group.machine.limits import GroupLimits
from semel_group.machine.membership.membership_machine import MembershipMachine
from semel_group.machine.moves import GroupMoves
from semel_group.machine.offsets.offsets_machine import OffsetsMachine
from semel_group.machine.records import GroupDeleted, OffsetRemoved, Record
from semel_group.machine.topics import Topics
from semel_group.machine.values import NamedPartition, RefusedOffset
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.machine import Result


class GroupDeletion:
    """Decides what goes. Asks membership about members, and offsets about positions."""

    def __init__(
        self,
        limits: GroupLimits,
        cluster: ClusterCopy,
        moves: GroupMoves,
        groups: Groups,
        membership: MembershipMachine,
        offsets: OffsetsMachine,
    ) -> None:
        """Decide about the groups of these machines."""
        self._limits = limits
        self._cluster = cluster
        self._topics = Topics(cluster)
        self._moves = moves
        self._groups = groups
        self._membership = membership
        self._offsets = offsets

    # -- operators -------------------------------------------------------------------------------

    def delete_offsets(
        self, group_id: str, asked: Iterable[NamedPartition]
    ) -> Result[tuple[RefusedOffset, ...], Record]:
        """Forget offsets, each for itself; of what there is none, none is left. Answers refusals.

        Refused are unknown partitions, and topics that a member reads. Raises GroupIdNotFoundError.
        """
        self._moves.check_in_charge(group_id)
        self._groups.check_exists(group_id)
        group = self._offsets.group(group_id)
        held = group.held()
        removed: dict[TopicPartition, Record] = {}
        refused: list[RefusedOffset] = []
        for name, number in asked:
            try:
                partition = self._topics.partition(name, number)
                self._check_not_subscribed(group_id, partition)
            except SemelError as error:
                value = error.as_value()
                refused.append(RefusedOffset(topic=name, partition=number, error=value))
                continue
            if partition in group.committed or partition in held:
                removed[partition] = OffsetRemoved(group_id=group_id, partition=partition)
        return Result(tuple(refused), tuple(removed.values()))

    def delete_groups(
        self, group_ids: Sequence[str]
    ) -> Result[tuple[SemelError | None, ...], Record]:
        """Forget groups with their offsets. Answers for each, in the order given, why not."""
        refused: list[SemelError | None] = []
        records: list[Record] = []
        for group_id in group_ids:
            try:
                records.append(self._deleted(group_id))
                refused.append(None)
            except SemelError as error:
                refused.append(error.as_value())
        return Result(tuple(refused), tuple(records))

    def _deleted(self, group_id: str) -> GroupDeleted:
        self._moves.check_in_charge(group_id)
        self._groups.check_exists(group_id)
        if self._membership.has_members(group_id):
            members = len(self._membership.groups[group_id].members)
            raise NonEmptyGroupError(f"group {group_id!r} has {members} members")
        return GroupDeleted(group_id=group_id)

    def _check_not_subscribed(self, group_id: str, partition: TopicPartition) -> None:
        topic = self._topics.name_of(partition.topic_id).topic
        if self._membership.is_subscribed(group_id, topic):
            raise GroupSubscribedToTopicError(
                f"a member of group {group_id!r} reads topic {topic!r}"
            )

    # -- the passage of time ---------------------------------------------------------------------

    def remove_deleted_topics(
        self, group_ids: Iterable[str], offsets_max: int
    ) -> Result[int, Record]:
        """Forget offsets of topics that are gone, so many at most. Answers how many it were."""
        if self._cluster.image is None:
            return Result(0)
        gone = (
            OffsetRemoved(group_id=group_id, partition=partition)
            for group_id in self._moves.served(group_ids)
            for partition in self._offsets.group(group_id).partitions()
            if not self._topics.exists(partition.topic_id)
        )
        records = tuple(islice(gone, offsets_max))
        return Result(len(records), records)

    def expire_offsets(
        self, group_ids: Iterable[str], offsets_max: int, *, now_ms: int
    ) -> Result[int, Record]:
        """Forget expired offsets, and groups that are expired themselves: so many records at most.

        Answers how many it were.
        """
        expired = chain.from_iterable(
            self._expired(group_id, now_ms) for group_id in self._moves.served(group_ids)
        )
        records = tuple(islice(expired, offsets_max))
        return Result(len(records), records)

    def _expired(self, group_id: str, now_ms: int) -> Iterator[Record]:
        yield from self._expired_offsets(group_id, now_ms)
        is_group = group_id in self._membership.groups
        group = self._offsets.group(group_id)
        nothing_left = not group.committed and not group.pending
        if is_group and nothing_left and not self._membership.has_members(group_id):
            yield GroupDeleted(group_id=group_id)

    def _expired_offsets(self, group_id: str, now_ms: int) -> Iterator[OffsetRemoved]:
        group = self._offsets.group(group_id)
        membership = self._membership
        held = group.held()
        for partition in sorted(group.committed):
            committed_ms = group.committed[partition][1].commit_time_ms
            unsubscribed_ms = membership.unsubscribed_ms(group_id, partition.topic_id)
            kept_ms = now_ms - max(committed_ms, unsubscribed_ms)
            if kept_ms < self._limits.offsets_retention_ms or partition in held:
                continue
            topic = self._topics.name_of(partition.topic_id).topic
            if not membership.is_subscribed(group_id, topic):
                yield OffsetRemoved(group_id=group_id, partition=partition)
