"""The whole machine: its handlers, the one place where records change it, and its snapshot.

Handlers bear the names of RPCs. A decision about one partition concerns that partition alone, so
errors are values of the response; the journal gets the decisions on all of them at once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TypeVar

from semel_broker.machine import compaction, moves, recovery
from semel_broker.machine.compaction import CompactionPlan
from semel_broker.machine.descriptions import (
    PartitionProducers,
    open_transactions_of,
    producers_behind,
    producers_of,
)
from semel_broker.machine.gauges import PartitionStanding, standing
from semel_broker.machine.limits import LogLimits
from semel_broker.machine.log_directory import LogDirectory
from semel_broker.machine.log_start import RecordDeletions, expired
from semel_broker.machine.markers import OutcomeDecisions
from semel_broker.machine.moves import Copy, CopyPlan, HandedOver, Move
from semel_broker.machine.partition_log import PartitionLog
from semel_broker.machine.produce import batch_max_bytes, decide_append
from semel_broker.machine.producer_expiry import forgotten, idle_producers
from semel_broker.machine.records import (
    BatchAppended,
    LogCompacted,
    LogDropped,
    LogIdsGiven,
    LogPurged,
    LogRecord,
    LogState,
    MarkerAppended,
    Record,
)
from semel_broker.machine.recovery import RaisedLogs
from semel_broker.machine.values import (
    Appended,
    Deleted,
    DeletePosition,
    FetchPosition,
    IsolationLevel,
    Outcome,
    PartitionName,
    ProducePartition,
    ReadPlan,
)
from semel_common.errors import (
    InvalidRequestError,
    OffsetOutOfRangeError,
    SemelError,
)
from semel_common.ids import TopicPartition
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.journal.contract import StoredBatch
from semel_runtime.machine import Result
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochs, CoordinatorEpochSeen
from semel_runtime.participant.inquiry import OpenCursor, OpenSince, OpenTransactionAt, oldest
from semel_runtime.participant.producer_expiry import IdleProducer

T = TypeVar("T")


class BrokerMachine:
    """All partitions that this broker leads, and its copy of the cluster's metadata."""

    def __init__(self, instance_id: int, limits: LogLimits) -> None:
        self.cluster = ClusterCopy()
        self._instance_id = instance_id
        self._limits = limits
        self._logs = LogDirectory(instance_id, self.cluster)
        self._coordinator_epochs = CoordinatorEpochs()
        self._open: dict[int, PartitionLog] = {}
        """Logs with open transactions, by id: few of all, and looked for several times a second."""
        self._last_offset = 0

    # -- appending -----------------------------------------------------------------------------

    def produce(
        self, partitions: Sequence[ProducePartition], *, now_ms: int
    ) -> Result[list[Appended | SemelError], Record]:
        """Append batches to partitions, each named at most once."""
        records: list[BatchAppended] = []
        taken: set[int] = set()
        answers = [
            _value(partial(self._produce, partition, now_ms, taken, records))
            for partition in partitions
        ]
        return Result(answers, records)

    def _produce(
        self, request: ProducePartition, now_ms: int, taken: set[int], records: list[BatchAppended]
    ) -> Appended:
        log = self._logs.find(request.name)
        if log.log_id in taken:
            raise InvalidRequestError(
                f"partition {log.partition.partition} of topic"
                f" {log.identity.topic!r} is named twice"
            )
        taken.add(log.log_id)
        for batch in request.batches:
            self.cluster.check_producer_id(batch.producer_id)
        decision = decide_append(
            log,
            request.batches,
            expected_base_offset=request.expected_base_offset,
            now_ms=now_ms,
            limits=self._limits,
        )
        records += decision.records
        return Appended(
            log_id=log.log_id,
            partition=log.partition,
            base_offset=decision.base_offset,
            log_start_offset=log.log_start_offset,
            base_offsets=decision.base_offsets,
        )

    # -- outcomes ------------------------------------------------------------------------------

    def write_txn_markers(
        self, outcomes: Sequence[Outcome], *, now_ms: int
    ) -> Result[list[SemelError | None], Record]:
        """Close transactions, each at one partition; answers why an outcome was refused, or None.

        Idempotent. The answers to inquiries are applied in the same way.
        """
        decisions = OutcomeDecisions(self._logs, self._coordinator_epochs.check(), now_ms=now_ms)
        refusals = decisions.decide_all(outcomes)
        return Result(refusals, decisions.records)

    def transactions_to_inquire(
        self, *, now_ms: int
    ) -> Result[list[OpenTransactionAt[TopicPartition]], Record]:
        """Return the open transactions to ask about, in the order of logs and of first offsets."""
        is_due = self._limits.inquiry.is_due
        return Result(
            [
                OpenTransactionAt(
                    log.partition, open_transaction.producer_id, open_transaction.producer_epoch
                )
                for _, log in sorted(self._open.items())
                if self._logs.is_led(log)
                for open_transaction in log.open_transactions.values()
                if is_due(
                    now_ms=now_ms,
                    start_ms=open_transaction.start_ms,
                    superseded_ms=open_transaction.superseded_ms,
                )
            ]
        )

    def open_transactions(
        self, *, open_since_ms: int, limit: int, after: OpenCursor | None = None
    ) -> Result[list[OpenSince[TopicPartition]], Record]:
        """Return the transactions that have been open since a time or longer, the oldest first."""
        found = open_transactions_of(self._logs.led_here())
        return Result(oldest(found, open_since_ms=open_since_ms, limit=limit, after=after))

    def describe_producers(
        self, partitions: Sequence[TopicPartition], limit: int
    ) -> Result[list[PartitionProducers | SemelError], Record]:
        """Return the producers of each partition, or the reason why this broker cannot tell."""
        return Result(
            [
                _value(partial(self._describe_producers, partition, limit))
                for partition in partitions
            ]
        )

    def describe_producers_behind(
        self, partition: TopicPartition, producer_id: int, limit: int
    ) -> Result[PartitionProducers | SemelError, Record]:
        """Return a partition's producers behind an id, or why that cannot be said here."""
        find = partial(self._logs.find_by_id, partition)
        return Result(_value(lambda: producers_behind(find(), producer_id, limit)))

    def _describe_producers(self, partition: TopicPartition, limit: int) -> PartitionProducers:
        return producers_of(self._logs.find_by_id(partition), limit)

    def has_open_transactions(self) -> bool:
        """Whether any transaction is open."""
        return bool(self._open)

    # -- idle producers ------------------------------------------------------------------------

    def participants(self) -> Result[Sequence[TopicPartition], Record]:
        """Return all partitions that are led here, to go through them in pieces."""
        return Result([log.partition for log in self._logs.led_here()])

    def producer_ids(self, partition: TopicPartition) -> Result[Sequence[int], Record]:
        """Return the producers that a partition knows."""
        log = self._logs.led_at(partition)
        return Result([] if log is None else list(log.producers))

    def idle_producers(
        self, partition: TopicPartition, producer_ids: Sequence[int], *, now_ms: int
    ) -> Result[list[IdleProducer[TopicPartition]], Record]:
        """Return the idle ones of the producers that a partition knew."""
        log = self._logs.led_at(partition)
        if log is None:
            return Result([])
        return Result(idle_producers(log, producer_ids, now_ms=now_ms, limits=self._limits))

    def forget_producers(
        self, idle: Sequence[IdleProducer[TopicPartition]], *, now_ms: int
    ) -> Result[int, Record]:
        """Forget the producers that are as idle as before. Answers how many."""
        records = list(forgotten(self._logs.led_at, idle, now_ms=now_ms, limits=self._limits))
        return Result(len(records), records)

    # -- reading -------------------------------------------------------------------------------

    def fetch(
        self, positions: Sequence[FetchPosition], isolation: IsolationLevel
    ) -> Result[list[ReadPlan | SemelError], Record]:
        """Return what may be read of each partition, from its offset on."""
        return Result([_value(partial(self._fetch, position, isolation)) for position in positions])

    def list_offsets(
        self, names: Sequence[PartitionName], isolation: IsolationLevel
    ) -> Result[list[ReadPlan | SemelError], Record]:
        """Return between which offsets each partition may be read."""
        return Result([_value(partial(self._locate, name, isolation)) for name in names])

    def readable_beyond(self, log_id: int, isolation: IsolationLevel, offset: int) -> bool:
        """Whether a reader that waits at ``offset`` has something to read, or to be told."""
        log = self._logs.get(log_id)
        return log is None or not self._logs.is_led(log) or _plan(log, isolation).upto > offset

    def _fetch(self, position: FetchPosition, isolation: IsolationLevel) -> ReadPlan:
        log = self._logs.find(position.name)
        if not log.log_start_offset <= position.fetch_offset <= log.log_end_offset:
            raise OffsetOutOfRangeError(
                f"offset {position.fetch_offset} is not within {log.log_start_offset} to"
                f" {log.log_end_offset}",
                log_start_offset=log.log_start_offset,
                high_watermark=log.log_end_offset,
            )
        return _plan(log, isolation)

    def _locate(self, name: PartitionName, isolation: IsolationLevel) -> ReadPlan:
        return _plan(self._logs.find(name), isolation)

    # -- metadata and space --------------------------------------------------------------------

    def standing(self) -> Iterator[PartitionStanding]:
        """Yield how the partitions led here stand now, durable or not: for people only."""
        return standing(self._logs.led_here())

    def apply_metadata(self, image: ClusterImage) -> Result[bool, Record]:
        """Take a newer image: create what is led here now, drop what was deleted.

        Answers whether it was newer. Raises InconsistentClusterIdError.
        """
        updated = self.cluster.update(image)
        if not updated.records:
            return Result(False)
        return Result(True, [*updated.records, *self._logs.follow(image)])

    def dropped_logs(self) -> Result[tuple[int, ...], Record]:
        """Return the logs whose batches are to be deleted."""
        return Result(self._logs.dropped)

    def purged(self, log_id: int) -> Result[None, Record]:
        """Note that no batch of a dropped log is left."""
        return Result(None, (LogPurged(log_id=log_id),))

    def delete_records(
        self, positions: Sequence[DeletePosition], *, validate_only: bool = False
    ) -> Result[list[Deleted | SemelError], Record]:
        """Serve nothing below an offset of each partition any more; idempotent."""
        decisions = RecordDeletions(self._logs)
        answers = [_value(partial(decisions.delete, position)) for position in positions]
        return Result(answers, () if validate_only else decisions.records)

    def apply_retention(
        self, partitions: Iterable[TopicPartition], *, now_ms: int
    ) -> Result[None, Record]:
        """Cut off what topics do not keep any more; never past the last stable offset."""
        return Result(None, list(expired(self._logs.led_of(partitions), now_ms=now_ms)))

    def cut_logs(self) -> Result[dict[int, int], Record]:
        """Return where each log starts that has been cut, by log id."""
        return Result(
            {log.log_id: log.log_start_offset for log in self._logs if log.log_start_offset}
        )

    # -- an older volume -----------------------------------------------------------------------

    def all_aborted(self) -> Result[list[Outcome], Record]:
        """Return an outcome for each open transaction that aborts it; see recovery.py."""
        return Result(list(recovery.all_aborted(self._logs.led_here(), self._coordinator_epochs)))

    def raise_logs(self, image: ClusterImage, floor: int) -> Result[RaisedLogs, Record]:
        """Take the cluster's image, and go on at an offset in every log; see recovery.py.

        Raises InvalidRequestError while a partition moves away from here.
        """
        recovery.check_nothing_leaves(image, self._instance_id)
        newer = self.cluster.update(image).records
        changed = list(self._logs.follow(image)) if newer else []
        return recovery.raised(self._logs, newer, changed, floor)

    # -- compaction ----------------------------------------------------------------------------

    def logs_to_compact(self) -> Result[list[CompactionPlan], Record]:
        """Return what can be compacted, the dirtiest log first."""
        return Result(compaction.plans(filter(self._logs.is_settled, self._logs)))

    def logs(self) -> Iterator[PartitionLog]:
        """Return all logs, served or not: for who checks a volume that is not served."""
        return iter(self._logs)

    def thin_out(self, log_id: int, upto: int) -> Result[bool, Record]:
        """Note that a pass of compaction begins below an offset; answers whether it may."""
        log = self._logs.get(log_id)
        if log is None or not self.is_compacted(log_id):
            return Result(False)
        return Result(True, list(compaction.thinned(log, upto)))

    def is_compacted(self, log_id: int) -> bool:
        """Whether a log is led here and moves nowhere, and its topic is compacted."""
        log = self._logs.get(log_id)
        return log is not None and log.config.cleanup_policy.compacts and self._logs.is_settled(log)

    def keyed_batch_max_bytes(self, name: PartitionName) -> int | None:
        """Return how large a batch may be where records without a key are refused.

        None: they are taken, or nothing is known of the partition.
        """
        log = self._logs.look_up(name)
        if log is None or not log.config.cleanup_policy.compacts:
            return None
        return batch_max_bytes(log, self._limits)

    def compacted(self, end: LogCompacted) -> Result[None, Record]:
        """Note the end of a pass; of a log that is gone or moves, it is of no interest."""
        log = self._logs.get(end.log_id)
        return Result(None, (end,) if log is not None and self._logs.is_settled(log) else ())

    # -- moving partitions ---------------------------------------------------------------------

    def copy_log(self, move: Move, from_offset: int) -> Result[CopyPlan, Record]:
        """Return what the broker to which a partition moves may copy; see moves.py."""
        return Result(moves.copy_plan(self._logs, move, from_offset))

    def hand_over_log(self, move: Move) -> Result[None, Record]:
        """Serve a partition no more; see moves.py."""
        return Result(None, moves.ended(self._logs, move))

    def handed_over(self, move: Move) -> HandedOver:
        """Return the state of a handed-over log; it does not change any more."""
        return moves.handed_over(self._logs, self._coordinator_epochs, move)

    def copies(self) -> Result[list[Copy], Record]:
        """Return the logs that move here."""
        return Result(moves.copies(self._logs, self._instance_id))

    def log_copied(
        self, copy: Copy, batches: Sequence[StoredBatch], next_offset: int
    ) -> Result[None, Record]:
        """Store a piece of a log that moves here; see moves.py."""
        return Result(None, (moves.copied(self._logs, copy, next_offset),), batches)

    def log_taken_over(
        self, copy: Copy, entities: Sequence[Record], *, whole: bool, now_ms: int
    ) -> Result[None, Record]:
        """Know of a copy a piece of what its leader has handed over; ``whole``: the last one."""
        heard = self._coordinator_epochs
        known = moves.taken_over(self._logs, heard, copy, entities, whole=whole, now_ms=now_ms)
        return Result(None, list(known))

    # -- records -------------------------------------------------------------------------------

    def replay(self, offset: int, record: Record) -> None:
        """Apply one record; the only method that changes the machine."""
        self._last_offset = offset
        match record:
            case BatchAppended() | MarkerAppended():
                self._replay_in_log(record)
            case CoordinatorEpochSeen():
                self._coordinator_epochs.replay(offset, record)
            case LogDropped():
                self._logs.replay(record)
                self._open.pop(record.log_id, None)
            case LogState() | LogPurged() | LogIdsGiven():
                self._logs.replay(record)
            case ClusterImage():
                self.cluster.replay(offset, record)
                self._logs.configure()
            case _:
                self._replay_in_log(record)

    def _replay_in_log(self, record: LogRecord) -> None:
        log = self._logs.log(record.log_id)
        log.replay(record)
        if log.open_transactions:
            self._open[log.log_id] = log
        else:
            self._open.pop(log.log_id, None)

    def snapshot(self) -> Iterator[tuple[int, Record]]:
        """Return records that make the same machine; none depends on its offset."""
        last_offset = self._last_offset
        return ((last_offset, record) for record in self._entities())

    def _entities(self) -> Iterator[Record]:
        return chain(
            [image for _, image in self.cluster.snapshot()],
            [seen for _, seen in self._coordinator_epochs.snapshot()],
            chain.from_iterable([log.snapshot() for log in self._logs]),
            tuple(self._logs.snapshot()),
        )


def _plan(log: PartitionLog, isolation: IsolationLevel) -> ReadPlan:
    end, stable = log.log_end_offset, log.last_stable_offset
    return ReadPlan(
        place=log.place,
        log_start_offset=log.log_start_offset,
        high_watermark=end,
        last_stable_offset=stable,
        upto=stable if isolation is IsolationLevel.READ_COMMITTED else end,
        sparse_below=end if log.config.cleanup_policy.compacts else log.compacted.upto,
        aborted=log.aborted,
    )


def _value(decide: Callable[[], T]) -> T | SemelError:
    """Make a value of the decision on one partition, or of the reason for its refusal."""
    try:
        return decide()
    except SemelError as error:
        return error.as_value()
