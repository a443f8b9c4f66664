"""One partition's log: what its records make of it.

Theory of operation. Offsets are given in the order in which records are replayed. The first batch
of a transaction opens it; its marker closes it, and if it was aborted, the range of both goes into
the aborted index. Because a transaction opens at the end of the log, open transactions are in the
order of their first offsets, and the last stable offset is that of the first one. Below it nothing
changes any more.
"""

from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain
from typing import assert_never

from msgspec.structs import replace

from semel_broker.machine.log.aborted_index import AbortedIndex
from semel_broker.machine.log.gaps import NO_GAPS, Gaps, gaps_above, with_gap
from semel_broker.machine.log.segments import BATCH_OVERHEAD_BYTES, Segments
from semel_broker.machine.log.sequence_checks import after_batch, after_fence, after_marker, unknown
from semel_broker.machine.records import (
    AbortedTransaction,
    BatchAppended,
    LogCompacted,
    LogCopied,
    LogEndMoved,
    LogRecord,
    LogSegment,
    LogStartMoved,
    LogState,
    LogTakenOver,
    MarkerAppended,
    OpenTransaction,
    ProducerFenced,
    ProducerForgotten,
    ProducerState,
)
from semel_broker.machine.values import LogPlace, LogStart
from semel_common.ids import NO_PRODUCER_ID, TopicPartition
from semel_runtime.cluster.topic_options import DEFAULTS


class PartitionLog:
    """The log of one partition that this broker leads, or that moves here."""

    __slots__ = (
        "_gaps",
        "aborted",
        "compacted",
        "config",
        "identity",
        "log_end_offset",
        "log_id",
        "log_start",
        "open_transactions",
        "partition",
        "producers",
        "segments",
    )

    def __init__(self, state: LogState) -> None:
        self.log_id = state.log_id
        self.partition = TopicPartition(state.topic_id, state.partition)
        self.identity = state
        self.log_start = LogStart(state.log_start_offset)
        self.log_end_offset = state.log_end_offset
        self._forget()
        self._gaps: Gaps = known_gaps(state)
        self.config = DEFAULTS
        """The topic's options, as the metadata has them."""

    def _forget(self) -> None:
        """Forget the state of the log."""
        self.producers: dict[int, ProducerState] = {}
        # An OrderedDict, because a dict's first item costs as many steps as were deleted before it.
        self.open_transactions: OrderedDict[tuple[int, int], OpenTransaction] = OrderedDict()
        self.aborted = AbortedIndex()
        self.compacted = LogCompacted(log_id=self.log_id, upto=0, records_left=0, size_bytes_left=0)
        self.segments = Segments()

    @property
    def log_start_offset(self) -> int:
        """Below it, nothing is served any more."""
        return self.log_start.offset

    @property
    def last_stable_offset(self) -> int:
        """Below it, every transaction's outcome is known."""
        if not self.open_transactions:
            return self.log_end_offset
        return next(iter(self.open_transactions.values())).first_offset

    @property
    def gaps(self) -> Gaps:
        """Where batches may be missing."""
        if not self.identity.gaps_known and self.config.cleanup_policy.compacts:
            return with_gap(self._gaps, 0, self.log_end_offset)
        return self._gaps

    @property
    def place(self) -> LogPlace:
        """What readers have to know of where the log lies."""
        return LogPlace(
            log_id=self.log_id,
            topic=self.identity.topic,
            partition=self.partition,
            log_start=self.log_start,
            gaps_now=self._gaps_now,
        )

    def _gaps_now(self) -> Gaps:
        return self.gaps

    def state(self) -> LogState:
        """Return the log by itself, as it stands now."""
        return replace(
            self.identity,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            gaps=self.gaps,
            gaps_known=True,
        )

    def producer(self, producer_id: int) -> ProducerState:
        """Return the state of a producer."""
        return self.producers.get(producer_id) or unknown(self.log_id, producer_id)

    def replay(self, record: LogRecord) -> None:  # noqa: C901 - one case for each record
        """Apply one record."""
        match record:
            case BatchAppended():
                self._append(record)
            case MarkerAppended():
                self._end_transaction(record)
            case ProducerFenced():
                state = after_fence(self.producer(record.producer_id), record)
                self.producers[record.producer_id] = state
                self._supersede(state, below=record.fence, now_ms=record.fenced_ms)
            case LogStartMoved():
                self._cut(record.log_start_offset)
            case LogCopied():
                self.log_end_offset = record.log_end_offset
            case LogEndMoved():
                self._gaps = with_gap(self._gaps, self.log_end_offset, record.log_end_offset)
                self.log_end_offset = record.log_end_offset
            case LogTakenOver():
                self._forget()
                self._gaps = record.gaps
                self.log_start.offset = record.log_start_offset
                self.log_end_offset = record.log_end_offset
            case LogCompacted():
                self.compacted = record
                self._gaps = with_gap(self._gaps, self.log_start_offset, record.upto)
                self.aborted = self.aborted.above(record.upto)
                self.segments.shrink(record.upto, record.size_bytes_left)
            case ProducerForgotten():
                del self.producers[record.producer_id]
            case ProducerState() | OpenTransaction() | AbortedTransaction() | LogSegment():
                self._put(record)
            case _:
                assert_never(record)

    def _put(
        self, entity: ProducerState | OpenTransaction | AbortedTransaction | LogSegment
    ) -> None:
        """Take a part of the log as a snapshot has it."""
        match entity:
            case ProducerState():
                self.producers[entity.producer_id] = entity
            case OpenTransaction():
                self.open_transactions[entity.producer_id, entity.producer_epoch] = entity
            case AbortedTransaction():
                self.aborted.add(entity)
            case LogSegment():
                self.segments.put(entity)
            case _:
                assert_never(entity)

    def snapshot(self) -> Iterator[LogState | LogRecord]:
        """Return the records of which the log is made now; they may be walked through later.

        All but the first and the last segment exist already.
        """
        state = self.state()
        return chain(
            (state, self.compacted) if self.compacted.upto else (state,),
            tuple(self.producers.values()),
            tuple(self.open_transactions.values()),
            iter(self.aborted),
            tuple(self.segments),
        )

    def identify(self, state: LogState) -> None:
        """Take the state that metadata or a move has changed; the content of the log stays."""
        self.identity = state
        for gap in state.gaps:
            self._gaps = with_gap(self._gaps, gap.start_offset, gap.end_offset)

    def drop(self) -> None:
        """Let the remaining readers see an empty log."""
        self.log_start.offset = self.log_end_offset + 1

    def _cut(self, log_start_offset: int) -> None:
        self.log_start.offset = log_start_offset
        self._gaps = gaps_above(self._gaps, log_start_offset)
        self.aborted = self.aborted.above(log_start_offset)
        self.segments.drop_below(log_start_offset, log_end_offset=self.log_end_offset)

    def _note_size(
        self, base_offset: int, size_bytes: int, now_ms: int, *, begins_segment: bool
    ) -> None:
        if begins_segment or self.segments.is_empty:
            self.segments.put(
                LogSegment(
                    log_id=self.log_id,
                    base_offset=base_offset,
                    size_bytes=0,
                    start_ms=now_ms,
                    last_ms=now_ms,
                )
            )
        self.segments.grow(size_bytes + BATCH_OVERHEAD_BYTES, now_ms)

    def _append(self, batch: BatchAppended) -> None:
        assert batch.base_offset == self.log_end_offset, "offsets are dense"
        self._note_size(
            batch.base_offset,
            batch.size_bytes,
            batch.appended_ms,
            begins_segment=batch.begins_segment,
        )
        self.log_end_offset += batch.record_count
        if batch.producer_id == NO_PRODUCER_ID:
            return
        before = self.producer(batch.producer_id)
        after = self.producers[batch.producer_id] = after_batch(before, batch)
        if after.open_epochs is not before.open_epochs:
            self._open_transaction(batch)
            if before.open_epochs:
                self._supersede(after, below=batch.producer_epoch, now_ms=batch.appended_ms)

    def _open_transaction(self, batch: BatchAppended) -> None:
        self.open_transactions[batch.producer_id, batch.producer_epoch] = OpenTransaction(
            log_id=self.log_id,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            first_offset=batch.base_offset,
            start_ms=batch.appended_ms,
            superseded_ms=None,
        )

    def _end_transaction(self, marker: MarkerAppended) -> None:
        assert marker.offset == self.log_end_offset, "offsets are dense"
        self._note_size(marker.offset, 0, marker.appended_ms, begins_segment=False)
        self.log_end_offset += 1
        state = after_marker(self.producer(marker.producer_id), marker)
        self.producers[marker.producer_id] = state
        ended = self.open_transactions.pop((marker.producer_id, marker.producer_epoch))
        if not marker.committed:
            self.aborted.add(
                AbortedTransaction(
                    log_id=self.log_id,
                    producer_id=marker.producer_id,
                    producer_epoch=marker.producer_epoch,
                    first_offset=ended.first_offset,
                    last_offset=marker.offset,
                )
            )
        self._supersede(state, below=state.fence, now_ms=marker.appended_ms)

    def _supersede(self, state: ProducerState, *, below: int, now_ms: int) -> None:
        """Note that a newer epoch was seen than that of these transactions."""
        for epoch in state.open_epochs:
            key = (state.producer_id, epoch)
            if epoch < below and self.open_transactions[key].superseded_ms is None:
                self.open_transactions[key] = replace(
                    self.open_transactions[key], superseded_ms=now_ms
                )


def known_gaps(state: LogState) -> Gaps:
    """Return where a log may have gaps; one that an earlier release describes, anywhere."""
    if state.gaps_known:
        return state.gaps
    return with_gap(NO_GAPS, state.log_start_offset, state.log_end_offset)
