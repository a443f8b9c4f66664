"""Whether one offset may be committed, by any caller and call."""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from semel_common.errors import (
    InvalidRequestError,
    OffsetMetadataTooLargeError,
)
from semel_common.record_batches.crc import crc32c
from semel_group.machine.membership.committing_members import stale_partition
from semel_group.machine.records import Member, OffsetCommitted
from semel_group.machine.topics import Topics
from semel_group.machine.values import Committer, NewOffset


class Admission(Struct, frozen=True, kw_only=True):
    """What the offsets of one request are checked against."""

    committer: Committer
    member: Member | None
    """Who commits; None: the group has no members."""
    topics: Topics
    metadata_max_bytes: int
    commit_time_ms: int

    def admit(self, offset: NewOffset) -> OffsetCommitted:
        """Return an offset as it is to be committed.

        Raises UnknownTopicOrPartitionError, UnknownTopicIdError, OffsetMetadataTooLargeError, and
        StaleMemberEpochError for a partition that the member does not hold.
        """
        partition = self.topics.partition(offset.topic, offset.partition)
        size_bytes = len(offset.metadata.encode())
        if size_bytes > self.metadata_max_bytes:
            raise OffsetMetadataTooLargeError(
                f"metadata of partition {offset.partition} has {size_bytes} bytes: "
                f"at most {self.metadata_max_bytes}"
            )
        if self.member is not None:
            stale = stale_partition(self.member, self.committer, partition)
            if stale is not None:
                raise stale
        return OffsetCommitted(
            group_id=self.committer.group_id,
            partition=partition,
            committed_offset=offset.committed_offset,
            metadata=offset.metadata,
            commit_time_ms=self.commit_time_ms,
        )


def checksum(offsets: Iterable[NewOffset]) -> int:
    """Return the CRC-32C of offsets as they were sent, whatever their order."""
    return crc32c(b"", *sorted(map(_canonical, offsets)))


def _canonical(offset: NewOffset) -> bytes:
    numbers = f"{offset.partition}\0{offset.committed_offset}\0"
    return "\0".join((*offset.topic, numbers, offset.metadata)).encode()


def distinct(offsets: list[OffsetCommitted]) -> tuple[OffsetCommitted, ...]:
    """Return the offsets if no partition has two. Raises InvalidRequestError."""
    named = Counter(offset.partition for offset in offsets)
    if len(named) < len(offsets):
        twice = min(partition for partition, count in named.items() if count > 1)
        raise InvalidRequestError(
            f"partition {twice.partition} of topic id {twice.topic_id} has two offsets"
        )
    return tuple(offsets)
