"""Offsets as protobuf."""

from semel.group.journal.v1 import offsets_pb2 as journal
from semel_common.ids import TopicPartition
from semel_group.machine.records import (
    OffsetCommitted,
    OffsetRemoved,
    TxnOffsetsCommitted,
)


def committed_to_journal(offset: OffsetCommitted, group_id: str) -> journal.OffsetCommittedRecord:
    """Write an offset; within a transaction's record, without its group."""
    return journal.OffsetCommittedRecord(
        group_id=group_id,
        topic_id=offset.partition.topic_id,
        partition=offset.partition.partition,
        committed_offset=offset.committed_offset,
        metadata=offset.metadata,
        commit_time_ms=offset.commit_time_ms,
    )


def committed_from_journal(offset: journal.OffsetCommittedRecord, group_id: str) -> OffsetCommitted:
    """Read an offset of a group."""
    return OffsetCommitted(
        group_id=group_id,
        partition=TopicPartition(offset.topic_id, offset.partition),
        committed_offset=offset.committed_offset,
        metadata=offset.metadata,
        commit_time_ms=offset.commit_time_ms,
    )


def removed_to_journal(removed: OffsetRemoved) -> journal.OffsetRemovedRecord:
    """Write the removal of an offset."""
    topic_id, partition = removed.partition
    return journal.OffsetRemovedRecord(
        group_id=removed.group_id, topic_id=topic_id, partition=partition
    )


def removed_from_journal(removed: journal.OffsetRemovedRecord) -> OffsetRemoved:
    """Read the removal of an offset."""
    partition = TopicPartition(removed.topic_id, removed.partition)
    return OffsetRemoved(group_id=removed.group_id, partition=partition)


def txn_to_journal(commit: TxnOffsetsCommitted) -> journal.TxnOffsetsCommittedRecord:
    """Write the offsets of a transaction."""
    return journal.TxnOffsetsCommittedRecord(
        group_id=commit.group_id,
        producer_id=commit.producer_id,
        producer_epoch=commit.producer_epoch,
        base_sequence=commit.base_sequence,
        start_time_ms=commit.start_time_ms,
        offsets=[committed_to_journal(offset, "") for offset in commit.offsets],
        crc32c=commit.crc32c,
    )


def txn_from_journal(commit: journal.TxnOffsetsCommittedRecord) -> TxnOffsetsCommitted:
    """Read the offsets of a transaction."""
    return TxnOffsetsCommitted(
        group_id=commit.group_id,
        producer_id=commit.producer_id,
        producer_epoch=commit.producer_epoch,
        base_sequence=commit.base_sequence,
        start_time_ms=commit.start_time_ms,
        offsets=tuple(committed_from_journal(offset, commit.group_id) for offset in commit.offsets),
        crc32c=commit.crc32c if commit.HasField("crc32c") else None,
    )
