"""Deciding an append: all batches of one request to one partition are taken or refused together.

The batches are validated one after the other against a candidate, as Kafka's ProducerAppendInfo
does; replay puts the same in place. Checks of form (CRC, counts) were made at the edge.
"""

from collections.abc import Sequence

from msgspec import Struct

from semel_broker.machine.limits import LogLimits
from semel_broker.machine.log import sequence_checks
from semel_broker.machine.log.partition_log import PartitionLog
from semel_broker.machine.records import AppendedBatch, BatchAppended, ProducerState
from semel_broker.machine.values import BatchHeader
from semel_common.errors import (
    BaseOffsetMismatchError,
    ConcurrentTransactionsError,
    MessageTooLargeError,
    ThrottlingQuotaExceededError,
)
from semel_common.ids import NO_PRODUCER_ID


class AppendDecision(Struct, frozen=True):
    """What to append, and where each batch of the request is."""

    base_offset: int
    base_offsets: tuple[int | None, ...]
    records: list[BatchAppended]


def decide_append(
    log: PartitionLog,
    batches: Sequence[BatchHeader],
    *,
    expected_base_offset: int | None = None,
    now_ms: int,
    limits: LogLimits,
) -> AppendDecision:
    """Give offsets to all batches that are no repeats, or refuse the whole.

    A condition concerns new batches: repeats have met theirs, or their original had none. The limit
    on the size holds for new batches only, too: it may have been lowered since.
    """
    candidate = _Candidate(log, expected_base_offset)
    base_offsets: list[int | None] = []
    first_offset: int | None = None
    maximum = batch_max_bytes(log, limits)
    for batch in batches:
        known = candidate.repeated(batch)
        if first_offset is None:
            first_offset = candidate.end_offset if known is None else known.base_offset
        if known is None:
            check_size(batch, maximum)
            base_offsets.append(candidate.end_offset)
            candidate.append(batch, now_ms=now_ms, limits=limits)
        else:
            base_offsets.append(None)
            candidate.pass_by(batch)
    assert first_offset is not None, "a request without batches was refused at the edge"
    return AppendDecision(first_offset, tuple(base_offsets), candidate.records)


class _Candidate:
    """A log as it would be after the batches decided so far."""

    __slots__ = ("_appended", "_expected", "_log", "_producers", "end_offset", "records")

    def __init__(self, log: PartitionLog, expected_base_offset: int | None) -> None:
        self._log = log
        self._expected = expected_base_offset
        self._producers: dict[int, ProducerState] = {}
        self._appended: dict[int, BatchAppended] = {}
        self.end_offset = log.log_end_offset
        self.records: list[BatchAppended] = []

    def repeated(self, batch: BatchHeader) -> AppendedBatch | None:
        if batch.producer_id == NO_PRODUCER_ID:
            return None
        return sequence_checks.repeated(self._producer(batch.producer_id), batch)

    def append(self, batch: BatchHeader, *, now_ms: int, limits: LogLimits) -> None:
        begins_segment = not self.records and self._log.segments.is_full(self._log.config, now_ms)
        record = BatchAppended(
            log_id=self._log.log_id,
            base_offset=self.end_offset,
            record_count=batch.record_count,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            transactional=batch.transactional,
            appended_ms=now_ms,
            size_bytes=batch.size_bytes,
            begins_segment=begins_segment,
            crc32c=batch.crc32c if batch.producer_id != NO_PRODUCER_ID else None,
        )
        if batch.producer_id != NO_PRODUCER_ID:
            state = self._producer(batch.producer_id)
            sequence_checks.check_next(state, batch, expiration_ms=limits.producer_expiration_ms)
            sequence_checks.check_transaction(state, batch)
            self._check_limits(state, batch, limits)
            self._appended[batch.producer_id] = record
        if self._expected is not None:
            self._check_expected(self._expected)
        self.records.append(record)
        self.end_offset += batch.record_count

    def pass_by(self, repeat: BatchHeader) -> None:
        """Leave out a repeat: what is new comes behind it."""
        if self._expected is not None:
            self._expected += repeat.record_count

    def _check_expected(self, expected: int) -> None:
        if not self.records and self.end_offset != expected:
            raise BaseOffsetMismatchError(
                f"the log ends at offset {self.end_offset}, not at {expected}",
                log_end_offset=self.end_offset,
                expected_base_offset=expected,
            )

    def _producer(self, producer_id: int) -> ProducerState:
        """Return a producer's state, made when it is looked at: mostly, no second batch follows."""
        state = self._producers.get(producer_id) or self._log.producer(producer_id)
        appended = self._appended.pop(producer_id, None)
        if appended is not None:
            state = sequence_checks.after_batch(state, appended)
        self._producers[producer_id] = state
        return state

    def _check_limits(self, state: ProducerState, batch: BatchHeader, limits: LogLimits) -> None:
        new = batch.producer_id not in self._log.producers
        if new and len(self._log.producers) >= limits.producers_max:
            raise ThrottlingQuotaExceededError(
                f"partition remembers {limits.producers_max} producers already"
            )
        if not batch.transactional or batch.producer_epoch in state.open_epochs:
            return
        if len(state.open_epochs) >= limits.open_epochs_max:
            raise ConcurrentTransactionsError(
                f"producer {batch.producer_id} has {len(state.open_epochs)} transactions"
                " open in this partition already"
            )
        if len(self._log.open_transactions) >= limits.open_transactions_max:
            raise ThrottlingQuotaExceededError(
                f"partition has {limits.open_transactions_max} open transactions already"
            )


def batch_max_bytes(log: PartitionLog, limits: LogLimits) -> int:
    """Return how large the payload of a batch may be in a log."""
    return log.config.max_message_bytes or limits.message_max_bytes


def check_size(batch: BatchHeader, maximum: int) -> None:
    """Refuse a payload that is larger; raises MessageTooLargeError."""
    if batch.size_bytes > maximum:
        raise MessageTooLargeError(
            f"payload of {batch.size_bytes} bytes is over {maximum}",
            size_bytes=batch.size_bytes,
            message_max_bytes=maximum,
        )
