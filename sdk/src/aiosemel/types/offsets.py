"""Partitions, offsets and group memberships, as users of producer and consumer name them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeVar

from aiosemel._shared.value_checks import check_group_id, check_number, check_text
from aiosemel.errors import InvalidRequestError
from semel_common.wire.messages.request_bounds import NAME_LENGTH_MAX


class TopicPartition(NamedTuple):
    """A partition, by the name of its topic."""

    topic: str
    partition: int

    @classmethod
    def named(cls, partition: object) -> "TopicPartition":
        """Return what a caller names by (topic, number); raises TypeError for anything else."""
        match partition:
            case TopicPartition(str(), int()):
                return partition
            case (str(topic), int(number)):
                return cls(topic, number)
            case _:
                raise TypeError(f"a partition is named by (topic, number), not by {partition!r}")

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


PartitionKey = TypeVar("PartitionKey", bound=tuple[str, int])
"""How callers may name partitions: (topic, partition), a ``TopicPartition`` among others."""


class OffsetAndMetadata(NamedTuple):
    """An offset to commit."""

    offset: int
    """Of the next record to read."""
    metadata: str = ""
    """Anything of the user's, at most 4096 bytes."""

    @classmethod
    def given(cls, at: object) -> "OffsetAndMetadata":
        """Return what a caller gives as a number, or with metadata.

        Raises TypeError, and InvalidRequestError for a number or a text that no request carries.
        """
        match at:
            case OffsetAndMetadata(int(), str()):
                given = at
            case int(offset) if type(offset) is int:
                given = cls(offset)
            case _:
                raise TypeError(f"offset must be int or OffsetAndMetadata, not {type(at).__name__}")
        check_number("offset", given.offset)
        check_text("metadata", given.metadata, InvalidRequestError)
        return given


class OffsetAndTimestamp(NamedTuple):
    """An offset that was found in a log."""

    offset: int
    timestamp_ms: int
    """Of the record there, in milliseconds since 1970-01-01 UTC; -1 of a log's start or end."""


class OffsetSpec(StrEnum):
    """Which offset of a log is asked for; Kafka's names."""

    EARLIEST = "earliest"
    LATEST = "latest"
    MAX_TIMESTAMP = "max-timestamp"
    """The record with the newest timestamp, which need not be the last one."""


class DeletedRecords(NamedTuple):
    """What a deletion has left of a partition."""

    log_start_offset: int
    """Of the first record that is left."""
    deleted_offsets: int
    """How many offsets are gone by it, those of markers and aborted records included; less, if
    the answer to an earlier attempt was lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMetadata:
    """Who commits offsets: what fences a member that has lost its partitions (KIP-447)."""

    group_id: str
    member_id: str = ""
    """Empty: no member. Such commits are taken only while the group has no members."""
    member_epoch: int = -1

    def __post_init__(self) -> None:
        """Refuse what no group coordinator takes, with InvalidRequestError or TypeError."""
        check_group_id(self.group_id)
        check_text("member_id", self.member_id, InvalidRequestError, length_max=NAME_LENGTH_MAX)
        check_number("member_epoch", self.member_epoch, minimum=-1)
