"""Where groups stand, and what transactions hold for them (protocol.md, sections 5 and 6).

Theory of operation. A committed offset is current at once. An offset that a transaction commits is
held back as pending under (producer id, producer epoch) until the outcome is known, by marker or by
inquiry; then it becomes current, unless something later already is, or goes. Every outcome raises
the producer's fence: nothing of that epoch is ever taken again. So whatever comes late, twice or
out of order, a group moves exactly once for each transaction that committed.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import assert_never

from msgspec.structs import replace

from semel_common.errors import ThrottlingQuotaExceededError
from semel_common.ids import GroupId, TopicPartition
from semel_group.machine.limits import GroupLimits
from semel_group.machine.offsets.producer import check_next, is_repeat
from semel_group.machine.offsets.state import GroupOffsets
from semel_group.machine.records import (
    GroupDeleted,
    OffsetCommitted,
    OffsetsRecord,
    ProducerForgotten,
    Record,
    TransactionEnded,
    TransactionNeverGiven,
    TxnOffsetsCommitted,
)
from semel_group.machine.values import (
    Transaction,
    TransactionResult,
)
from semel_runtime.machine import Result
from semel_runtime.participant.coordinator_epochs import (
    CoordinatorEpochCheck,
    CoordinatorEpochs,
    CoordinatorEpochSeen,
)
from semel_runtime.participant.inquiry import (
    InquiryAnswer,
    InquiryOutcome,
    OpenSince,
    OpenTransactionAt,
)
from semel_runtime.participant.producer_expiry import IdleProducer

_NO_OFFSETS = GroupOffsets()
"""A group that was never heard of."""


class OffsetsMachine:
    """The offsets of all groups."""

    def __init__(self, limits: GroupLimits) -> None:
        """Start without any."""
        self._limits = limits
        self._groups: dict[str, GroupOffsets] = {}
        self._with_offsets: set[str] = set()
        """The producers that count toward the limit: fences alone do not, because they come
        unasked.
        """
        self._pending: set[str] = set()
        """The groups with open transactions."""
        self.coordinator_epochs = CoordinatorEpochs()

    # -- handlers --------------------------------------------------------------------------------

    def commit_offsets(
        self, group_id: str, offsets: tuple[OffsetCommitted, ...]
    ) -> Result[None, Record]:
        """Let offsets be current. Raises ThrottlingQuotaExceededError."""
        self._check_groups(group_id)
        self._check_offsets(self.group(group_id).committed.keys(), offsets)
        return Result(None, offsets)

    def is_repeat(
        self, group_id: str, transaction: Transaction, base_sequence: int, *, crc32c: int
    ) -> bool:
        """Whether a commit was taken before, and is to be answered as it was then.

        Raises OutOfOrderSequenceNumberError for another commit under the same sequence.
        """
        state = self.group(group_id).producer(group_id, transaction.producer_id)
        return is_repeat(state, transaction, base_sequence, crc32c=crc32c)

    def txn_offset_commit(self, commit: TxnOffsetsCommitted) -> Result[None, Record]:
        """Hold offsets for a transaction, all or none; must not be a repeat.

        ``commit.start_time_ms`` is now.

        Raises InvalidProducerEpochError, OutOfOrderSequenceNumberError and
        ThrottlingQuotaExceededError.
        """
        group = self.group(commit.group_id)
        transaction = Transaction(commit.producer_id, commit.producer_epoch)
        producer = group.producer(commit.group_id, commit.producer_id)
        check_next(producer, transaction, commit.base_sequence)
        pending = group.pending.get(transaction)
        if pending is None:
            self._check_groups(commit.group_id)
            self._check_room(commit.group_id, group, commit.producer_id)
            self._check_offsets((), commit.offsets)
            return Result(None, (commit,))
        self._check_offsets(pending.partitions(), commit.offsets)
        return Result(None, (replace(commit, start_time_ms=pending.start_time_ms),))

    def end_transaction(
        self,
        group_id: str,
        transaction: Transaction,
        result: TransactionResult,
        *,
        now_ms: int,
    ) -> tuple[Record, ...]:
        """Return the facts of an outcome; none for a repeat."""
        group = self.group(group_id)
        fence = group.producer(group_id, transaction.producer_id).fence
        if transaction not in group.pending and fence > transaction.producer_epoch:
            return ()
        ended = TransactionEnded(
            group_id=group_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            committed=result is TransactionResult.COMMIT,
            ended_ms=now_ms,
        )
        return (ended,)

    def apply_inquiry_answer(
        self,
        answer: InquiryAnswer[GroupId],
        coordinators: CoordinatorEpochCheck,
        *,
        now_ms: int,
    ) -> Result[bool, Record]:
        """Do as the coordinator answered. Answers whether the transaction was pending until now.

        COMMITTED and ABORTED do what a marker does, fence included; what a marker has ended in
        between stays as it is. Raises TransactionCoordinatorFencedError.
        """
        (group_id,), producer_id, producer_epoch = answer.transaction
        transaction = Transaction(producer_id, producer_epoch)
        if transaction not in self.group(group_id).pending:
            return Result(False)
        if answer.outcome is InquiryOutcome.NEVER_GIVEN and answer.current_epoch >= producer_epoch:
            return Result(False)  # It was given in between.
        seen = coordinators.see(producer_id, answer.coordinator_epoch)
        return Result(True, (*seen, *self._outcome(answer, transaction, now_ms)))

    def idle_producers(
        self, participant: GroupId, producer_ids: Iterable[int], *, now_ms: int
    ) -> list[IdleProducer[GroupId]]:
        """Return the idle ones of the producers that a group knew.

        Never while a transaction is open; nor if the clock went back: the age is not known then.
        """
        group = self.group(participant.group_id)
        busy = {each.producer_id for each in group.pending}
        last_ms = now_ms - self._limits.producer_expiration_ms
        known = (
            (each, group.producers[each][1]) for each in producer_ids if each in group.producers
        )
        return [
            IdleProducer(participant, producer_id, state.fence)
            for producer_id, state in known
            if producer_id not in busy and state.last_ended_ms <= last_ms
        ]

    def forget_producers(
        self, idle: Sequence[IdleProducer[GroupId]], *, now_ms: int
    ) -> Result[int, Record]:
        """Forget the producers that are as idle as before. Answers how many."""
        asked: dict[GroupId, list[IdleProducer[GroupId]]] = {}
        for producer in idle:
            asked.setdefault(producer.participant, []).append(producer)
        as_they_were = set(idle)
        records = [
            ProducerForgotten(group_id=group.group_id, producer_id=still.producer_id)
            for group, those in asked.items()
            for still in self.idle_producers(
                group, [each.producer_id for each in those], now_ms=now_ms
            )
            if still in as_they_were
        ]
        return Result(len(records), records)

    # -- questions -------------------------------------------------------------------------------

    def group(self, group_id: str) -> GroupOffsets:
        """Return the offsets of a group; of an unknown one, none."""
        return self._groups.get(group_id, _NO_OFFSETS)

    def known_group_ids(self) -> list[str]:
        """Return the groups of which anything is known, if only the fence of a producer."""
        return list(self._groups)

    def group_ids(self) -> Iterable[str]:
        """Return the groups that have a position, or may get one."""
        return (group_id for group_id, group in self._groups.items() if not group.is_empty)

    def has_open_transactions(self) -> bool:
        """Whether any transaction is open."""
        return bool(self._pending)

    def open_transactions(self) -> Iterable[OpenSince[GroupId]]:
        """Return all that are open, each with the time of its first commit."""
        for group_id in self._pending:
            for transaction, pending in self._groups[group_id].pending.items():
                here = OpenTransactionAt(GroupId(group_id), *transaction)
                yield OpenSince(pending.start_time_ms, here)

    def is_open(self, transaction: OpenTransactionAt[GroupId]) -> bool:
        """Whether a transaction is still open."""
        pending = self.group(transaction.participant.group_id).pending
        return Transaction(transaction.producer_id, transaction.producer_epoch) in pending

    def transactions_to_inquire(self, now_ms: int) -> Iterable[OpenTransactionAt[GroupId]]:
        """Return the open transactions whose outcome is due: old ones, and superseded ones."""
        for group_id in sorted(self._pending):
            for producer_id, producer_epoch in self._due(self._groups[group_id], now_ms):
                yield OpenTransactionAt(GroupId(group_id), producer_id, producer_epoch)

    # -- replay ----------------------------------------------------------------------------------

    def replay(self, offset: int, record: OffsetsRecord | GroupDeleted) -> None:
        """Apply one record."""
        if isinstance(record, CoordinatorEpochSeen):
            self.coordinator_epochs.replay(offset, record)
            return
        group = self._groups.setdefault(record.group_id, GroupOffsets())
        group.replay(offset, record)
        _put(self._pending, record.group_id, belongs=bool(group.pending))
        _put(self._with_offsets, record.group_id, belongs=group.has_offsets)
        if group.is_unknown:
            del self._groups[record.group_id]

    def forget(self, group_id: str) -> None:
        """Know nothing of a group: it is another instance's."""
        self._groups.pop(group_id, None)
        self._pending.discard(group_id)
        self._with_offsets.discard(group_id)

    def snapshot(self) -> Iterable[tuple[int, OffsetsRecord]]:
        """Return everything, group by group."""
        return chain(
            self.coordinator_epochs.snapshot(),
            chain.from_iterable([group.snapshot() for group in self._groups.values()]),
        )

    # -- limits ----------------------------------------------------------------------------------

    def _check_groups(self, group_id: str) -> None:
        count = len(self._with_offsets)
        if group_id not in self._with_offsets and count >= self._limits.groups_max:
            raise ThrottlingQuotaExceededError(
                f"there are {count} groups with offsets: at most {self._limits.groups_max}"
            )

    def _check_offsets(
        self, known: Collection[TopicPartition], offsets: Iterable[OffsetCommitted]
    ) -> None:
        """Refuse positions above the limit; present ones may always move."""
        new = sum(offset.partition not in known for offset in offsets)
        count = len(known) + new
        if new and count > self._limits.offsets_max:
            raise ThrottlingQuotaExceededError(
                f"{count} partitions have offsets: at most {self._limits.offsets_max}"
            )

    def _check_room(self, group_id: str, group: GroupOffsets, producer_id: int) -> None:
        if len(group.pending) >= self._limits.pending_transactions_max:
            raise ThrottlingQuotaExceededError(
                f"group {group_id!r} has {len(group.pending)} open transactions: "
                f"at most {self._limits.pending_transactions_max}"
            )
        producers = len(group.producers)
        if producer_id not in group.producers and producers >= self._limits.producers_max:
            raise ThrottlingQuotaExceededError(
                f"group {group_id!r} knows {producers} producers: "
                f"at most {self._limits.producers_max}"
            )

    # -- inquiry ---------------------------------------------------------------------------------

    def _outcome(
        self, answer: InquiryAnswer[GroupId], transaction: Transaction, now_ms: int
    ) -> tuple[Record, ...]:
        group_id = answer.transaction.participant.group_id
        end = partial(self.end_transaction, group_id, transaction, now_ms=now_ms)
        match answer.outcome:
            case InquiryOutcome.COMMITTED:
                return end(TransactionResult.COMMIT)
            case InquiryOutcome.ABORTED:
                return end(TransactionResult.ABORT)
            case InquiryOutcome.NEVER_GIVEN:
                made_up = TransactionNeverGiven(
                    group_id=group_id,
                    producer_id=transaction.producer_id,
                    producer_epoch=transaction.producer_epoch,
                    current_epoch=answer.current_epoch,
                    ended_ms=now_ms,
                )
                return (made_up,)
            case _:
                assert_never(answer.outcome)

    def _due(self, group: GroupOffsets, now_ms: int) -> Iterable[Transaction]:
        """Return the due transactions of one group, the newest of each producer first."""
        is_due = self._limits.inquiry.is_due
        newer_since: dict[int, int] = {}
        for transaction in sorted(group.pending, reverse=True):
            producer_id, epoch = transaction
            started = group.pending[transaction].start_time_ms
            _, producer = group.producers[producer_id]
            newest = max(producer.producer_epoch, producer.fence - 1)
            known_newer = 0 if newest > epoch else None
            superseded = newer_since.get(producer_id, known_newer)
            newer_since[producer_id] = started if superseded is None else min(started, superseded)
            if is_due(now_ms=now_ms, start_ms=started, superseded_ms=superseded):
                yield transaction


def _put(group_ids: set[str], group_id: str, *, belongs: bool) -> None:
    if belongs:
        group_ids.add(group_id)
    else:
        group_ids.discard(group_id)
