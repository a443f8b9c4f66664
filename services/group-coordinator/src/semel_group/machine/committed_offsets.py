"""CommitOffsets, TxnOffsetCommit and FetchOffsets: which callers may move or read a group.

A group with members takes offsets of its members alone, each for the partitions that it holds.
"""

from collections.abc import Iterable, Sequence

from semel_common.errors import SemelError
from semel_group.machine.groups import Groups
from semel_group.machine.limits import GroupLimits
from semel_group.machine.membership.committing_members import check_current, committing_member
from semel_group.machine.membership.membership_machine import MembershipMachine
from semel_group.machine.moves import GroupMoves
from semel_group.machine.offset_commits import Admission, checksum, distinct
from semel_group.machine.offset_fetch import OffsetsPage, fetch_all, fetch_named, holders
from semel_group.machine.offsets.offsets_machine import OffsetsMachine
from semel_group.machine.records import Member, OffsetCommitted, Record, TxnOffsetsCommitted
from semel_group.machine.topics import Topics
from semel_group.machine.values import (
    Committer,
    FetchedOffsets,
    NamedPartition,
    NewOffset,
    RefusedOffset,
    Transaction,
)
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.machine import Result


class CommittedOffsets:
    """Decides which offsets of a request are committed. Asks membership about the caller."""

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

    def commit_offsets(
        self, committer: Committer, offsets: Sequence[NewOffset], *, now_ms: int
    ) -> Result[tuple[RefusedOffset, ...], Record]:
        """Commit offsets at once, each for itself. Answers the refused ones.

        Raises, for all of them, GroupIdNotFoundError, UnknownMemberIdError, StaleMemberEpochError,
        and InvalidRequestError for a partition named twice.
        """
        self._moves.check_in_charge(committer.group_id)
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
        records = self._offsets.commit_offsets(committer.group_id, distinct(admitted)).records
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
        self._moves.check_in_charge(committer.group_id)
        self._cluster.check_producer_id(transaction.producer_id)
        sent = checksum(offsets)
        if self._offsets.is_repeat(committer.group_id, transaction, base_sequence, crc32c=sent):
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
        return self._offsets.txn_offset_commit(commit)

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
        self._moves.check_in_charge(reader.group_id)
        if reader.member_id:
            check_current(reader, self._committing_member(reader))
        group = self._offsets.group(reader.group_id)
        held = holders(reader.group_id, group) if require_stable else {}
        if asked is None:
            return Result(fetch_all(group, held, self._topics, page))
        return Result(fetch_named(group, held, self._topics, asked))

    def _admission(self, committer: Committer, now_ms: int) -> Admission:
        return Admission(
            committer=committer,
            member=self._committing_member(committer),
            topics=self._topics,
            metadata_max_bytes=self._limits.offset_metadata_max_bytes,
            commit_time_ms=now_ms,
        )

    def _committing_member(self, committer: Committer) -> Member | None:
        if committer.member_id:
            self._groups.check_exists(committer.group_id)
        group = self._membership.groups.get(committer.group_id)
        return committing_member(group, committer)
