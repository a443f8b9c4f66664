"""The offsets of one group, as replay builds them.

Every entry keeps the journal offset at which it was written, its position: a position in the
journal, not the order of markers, says which of two offsets of a partition is the later one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from semel_common.ids import TopicPartition
from semel_group.machine.offsets.producer import (
    NO_SEQUENCE,
    after_commit,
    after_end,
    after_never_given,
    unknown_producer,
)
from semel_group.machine.records import (
    GroupDeleted,
    GroupOffsetsRecord,
    OffsetCommitted,
    OffsetRemoved,
    ProducerForgotten,
    ProducerState,
    TransactionEnded,
    TransactionNeverGiven,
    TxnOffsetsCommitted,
)
from semel_group.machine.values import Transaction


class PendingTransaction(Struct, frozen=True):
    """What one transaction without an outcome would commit to one group.

    ``commits`` are its TxnOffsetCommits by position. Each has only the offsets that no later one
    has replaced; commits without any are left out, except the last.
    """

    commits: tuple[tuple[int, TxnOffsetsCommitted], ...]

    @property
    def start_time_ms(self) -> int:
        """When the first of them came."""
        return self.commits[-1][1].start_time_ms

    @property
    def last_sequence(self) -> int:
        """The base sequence of the last of them."""
        return self.commits[-1][1].base_sequence

    def offsets(self) -> Iterable[tuple[int, OffsetCommitted]]:
        """Return the offsets with their positions; each partition once."""
        return (
            (position, offset) for position, commit in self.commits for offset in commit.offsets
        )

    def partitions(self) -> frozenset[TopicPartition]:
        """Return the partitions that it would move."""
        return frozenset(each.partition for _, each in self.offsets())

    def and_then(self, position: int, commit: TxnOffsetsCommitted) -> "PendingTransaction":
        """Return it with one more commit."""
        replaced = frozenset(offset.partition for offset in commit.offsets)
        older = ((at, _without(each, replaced)) for at, each in self.commits)
        kept = tuple((at, each) for at, each in older if each.offsets)
        return PendingTransaction((*kept, (position, commit)))

    def without(self, partitions: frozenset[TopicPartition]) -> "PendingTransaction":
        """Return it without some partitions."""
        left = [(at, _without(each, partitions)) for at, each in self.commits]
        return PendingTransaction((*(entry for entry in left[:-1] if entry[1].offsets), left[-1]))


@dataclass(slots=True)
class GroupOffsets:
    """One group. Only replay changes it."""

    committed: dict[TopicPartition, tuple[int, OffsetCommitted]] = field(default_factory=dict)
    pending: dict[Transaction, PendingTransaction] = field(default_factory=dict)
    producers: dict[int, tuple[int, ProducerState]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the group has no position, not even one that a transaction holds."""
        return not self.committed and not any(each.partitions() for each in self.pending.values())

    @property
    def has_offsets(self) -> bool:
        """Whether the group has more than fences: a position, or a transaction without outcome."""
        return bool(self.committed or self.pending)

    @property
    def is_unknown(self) -> bool:
        """Whether nothing at all is known of the group."""
        return not self.has_offsets and not self.producers

    def held(self) -> frozenset[TopicPartition]:
        """Return the partitions in which a transaction holds a position."""
        return frozenset().union(*(each.partitions() for each in self.pending.values()))

    def partitions(self) -> list[TopicPartition]:
        """Return every partition in which the group has a position, or may get one."""
        return sorted(self.held().union(self.committed))

    def producer(self, group_id: str, producer_id: int) -> ProducerState:
        """Return the state of a producer."""
        known = self.producers.get(producer_id)
        return unknown_producer(group_id, producer_id) if known is None else known[1]

    # -- replay ----------------------------------------------------------------------------------

    def replay(self, offset: int, record: GroupOffsetsRecord | GroupDeleted) -> None:
        """Apply one record of this group."""
        match record:
            case OffsetCommitted():
                self.committed[record.partition] = (offset, record)
            case OffsetRemoved():
                self._remove(record.partition)
            case TxnOffsetsCommitted():
                self._hold(offset, record)
            case TransactionEnded():
                self._end(offset, record)
            case TransactionNeverGiven():
                self._never_given(offset, record)
            case GroupDeleted():
                self._remove_all()
            case ProducerForgotten():
                del self.producers[record.producer_id]
            case ProducerState():
                self.producers[record.producer_id] = (offset, record)
            case _:
                assert_never(record)

    def snapshot(self) -> Iterable[tuple[int, GroupOffsetsRecord]]:
        """Return offsets, what transactions hold, then the producers, which have the last word."""
        return chain(
            tuple(self.committed.values()),
            chain.from_iterable([each.commits for each in self.pending.values()]),
            tuple(self.producers.values()),
        )

    def _hold(self, offset: int, record: TxnOffsetsCommitted) -> None:
        transaction = Transaction(record.producer_id, record.producer_epoch)
        before = self.pending.get(transaction, PendingTransaction(()))
        self.pending[transaction] = before.and_then(offset, record)
        state = self.producer(record.group_id, record.producer_id)
        after = after_commit(state, record.producer_epoch, record.base_sequence, record.crc32c)
        self.producers[record.producer_id] = (offset, after)

    def _end(self, offset: int, record: TransactionEnded) -> None:
        transaction = Transaction(record.producer_id, record.producer_epoch)
        pending = self.pending.pop(transaction, None)
        if pending is not None and record.committed:
            for position, each in pending.offsets():
                self._move(position, each)
        state = self.producer(record.group_id, record.producer_id)
        after = after_end(state, record.producer_epoch, record.ended_ms)
        self.producers[record.producer_id] = (offset, after)

    def _move(self, position: int, committed: OffsetCommitted) -> None:
        """Let a pending offset become current, unless a later write already did."""
        current = self.committed.get(committed.partition)
        if current is None or current[0] < position:
            self.committed[committed.partition] = (position, committed)

    def _never_given(self, offset: int, record: TransactionNeverGiven) -> None:
        self.pending.pop(Transaction(record.producer_id, record.producer_epoch), None)
        current = self.pending.get(Transaction(record.producer_id, record.current_epoch))
        last_sequence = NO_SEQUENCE if current is None else current.last_sequence
        state = self.producer(record.group_id, record.producer_id)
        after = after_never_given(state, record, last_sequence=last_sequence)
        self.producers[record.producer_id] = (offset, after)

    def _remove(self, partition: TopicPartition) -> None:
        self.committed.pop(partition, None)
        for transaction, pending in self.pending.items():
            if partition in pending.partitions():
                self.pending[transaction] = pending.without(frozenset({partition}))

    def _remove_all(self) -> None:
        """Forget every position. The producers stay fenced, and their transactions to be ended."""
        self.committed.clear()
        for transaction, pending in self.pending.items():
            self.pending[transaction] = pending.without(pending.partitions())


def _without(
    commit: TxnOffsetsCommitted, partitions: frozenset[TopicPartition]
) -> TxnOffsetsCommitted:
    left = tuple(offset for offset in commit.offsets if offset.partition not in partitions)
    return commit if len(left) == len(commit.offsets) else replace(commit, offsets=left)
