"""Partitions, offsets and group memberships, as users of producer and consumer name them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeVar

from aiosemel._shared.name_checks import check_topic_name, shown
from aiosemel._shared.value_checks import INT32_MAX, check_group_id, check_number, check_text
from aiosemel.errors import InvalidRequestError
from semel_common.wire.messages.request_bounds import NAME_LENGTH_MAX

NO_EPOCH = -1
"""Of a client that is no member of its group."""


class TopicPartition(NamedTuple):
    """A partition, by the name of its topic."""

    topic: str
    partition: int

    @classmethod
    def named(cls, partition: object) -> "TopicPartition":
        """Return the partition that a caller names by (topic, number).

        Raises TypeError for anything else, and InvalidTopicError or InvalidRequestError for a name
        or a number that no partition has.
        """
        match partition:
            case TopicPartition(str(), int()):
                named = partition
            case (str(topic), int(number)):
                named = cls(topic, number)
            case _:
                raise TypeError(
                    f"a partition is named by (topic, number), not by {shown(partition)}"
                )
        check_topic_name(named.topic)
        check_number("partition", named.partition, maximum=INT32_MAX)
        return named

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


PartitionKey = TypeVar("PartitionKey", bound=tuple[str, int])
"""How callers may name partitions: (topic, partition), a ``TopicPartition`` among others."""


Value = TypeVar("Value")


def by_partition(what: str, given: Mapping[PartitionKey, Value]) -> dict[TopicPartition, Value]:
    """Return the value of each partition of a caller; raises TypeError, and as ``named``."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} must be a mapping with partitions as keys, not {shown(given)}")
    return {TopicPartition.named(partition): value for partition, value in given.items()}


class OffsetAndMetadata(NamedTuple):
    """An offset to commit."""

    offset: int
    """Of the next record to read."""
    metadata: str = ""
    """Anything of the user's, at most 4096 bytes."""

    @classmethod
    def given(cls, at: object) -> "OffsetAndMetadata":
        """Return the offset that a caller gives as a number, or with metadata.

        Raises TypeError, and InvalidRequestError for a number or a text that no request carries.
        """
        match at:
            case OffsetAndMetadata():
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
    """The kinds of offsets of a log; Kafka's names."""

    EARLIEST = "earliest"
    LATEST = "latest"
    MAX_TIMESTAMP = "max-timestamp"
    """The record with the newest timestamp, which need not be the last one."""


class Lag(NamedTuple):
    """The records that a reader at an offset of a partition has yet to see."""

    records: int
    """Their number, without markers and, with READ_COMMITTED, without aborted records."""
    oldest_ms: int | None
    """The newest time of the batch with the oldest of them, in milliseconds since 1970-01-01 UTC;
    None: there is no such record, or its broker is of a release that does not tell the time."""


class DeletedRecords(NamedTuple):
    """The start of a partition after a deletion of records."""

    log_start_offset: int
    """Of the first record that is left."""
    deleted_offsets: int
    """How many offsets the deletion removed, markers and aborted records included; less, if the
    answer to an earlier attempt was lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMetadata:
    """The member that commits offsets; fences a member that lost its partitions (KIP-447)."""

    group_id: str
    member_id: str = ""
    """Empty: no member. Such commits are taken only while the group has no members."""
    member_epoch: int = NO_EPOCH

    def __post_init__(self) -> None:
        """Refuse what no group coordinator takes, with InvalidRequestError or TypeError."""
        check_group_id(self.group_id)
        check_text("member_id", self.member_id, InvalidRequestError, length_max=NAME_LENGTH_MAX)
        check_number("member_epoch", self.member_epoch, minimum=NO_EPOCH)
        if bool(self.member_id) != (self.member_epoch != NO_EPOCH):
            raise InvalidRequestError(
                f"member_id is {shown(self.member_id)} and member_epoch {self.member_epoch}: give"
                f" both of a member, or neither for a client outside of the group"
            )
