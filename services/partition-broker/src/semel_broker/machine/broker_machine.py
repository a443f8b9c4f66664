"""The whole machine: its parts, the one place where records change it, and its snapshot.

Handlers bear the names of RPCs; each part decides for one kind of call. A decision about one
partition concerns that partition alone, so errors are values of the response; the journal gets the
decisions on all of them at once.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

from semel_broker.machine import recovery
from semel_broker.machine.answers import answer_of
from semel_broker.machine.compaction import LogCompaction
from semel_broker.machine.descriptions import Descriptions
from semel_broker.machine.idle_producers import IdleProducers
from semel_broker.machine.limits import LogLimits
from semel_broker.machine.log.partition_log import PartitionLog
from semel_broker.machine.log_directory import LogDirectory
from semel_broker.machine.log_start import LogStarts
from semel_broker.machine.log_transactions import LogTransactions
from semel_broker.machine.moves import LogMoves
from semel_broker.machine.produce import decide_append
from semel_broker.machine.read_plans import ReadPlans
from semel_broker.machine.records import (
    BatchAppended,
    LogDropped,
    LogIdsGiven,
    LogPurged,
    LogRecord,
    LogState,
    MarkerAppended,
    Record,
)
from semel_broker.machine.recovery import RaisedLogs
from semel_broker.machine.values import Appended, Outcome, ProducePartition
from semel_common.errors import InvalidRequestError, SemelError
from semel_common.ids import TopicPartition
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.machine import Result
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochs, CoordinatorEpochSeen


class BrokerMachine:
    """All partitions that this broker leads, and its copy of the cluster's metadata."""

    def __init__(self, instance_id: int, limits: LogLimits) -> None:
        self.cluster = ClusterCopy()
        self._instance_id = instance_id
        self._limits = limits
        self._logs = logs = LogDirectory(instance_id, self.cluster)
        self._coordinator_epochs = CoordinatorEpochs()
        self._last_offset = 0
        self.reads = ReadPlans(logs)
        self.transactions = LogTransactions(logs, self._coordinator_epochs, limits)
        self.producers = IdleProducers(logs, limits)
        self.log_starts = LogStarts(logs)
        self.compaction = LogCompaction(logs, limits)
        self.moves = LogMoves(logs, self._coordinator_epochs, instance_id)
        self.descriptions = Descriptions(logs)

    # -- appending -----------------------------------------------------------------------------

    def produce(
        self, partitions: Sequence[ProducePartition], *, now_ms: int
    ) -> Result[list[Appended | SemelError], Record]:
        """Append batches to partitions, each named at most once."""
        records: list[BatchAppended] = []
        taken: set[int] = set()
        answers = [
            answer_of(partial(self._produce, partition, now_ms, taken, records))
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

    # -- metadata and space --------------------------------------------------------------------

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

    def led_partitions(self) -> Result[list[TopicPartition], Record]:
        """Return all partitions that are led here, to go through them in pieces."""
        return Result([log.partition for log in self._logs.led_here()])

    def logs(self) -> Iterator[PartitionLog]:
        """Return all logs, served or not: for the check of a volume that is not served."""
        return iter(self._logs)

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
                self.transactions.forget(record.log_id)
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
        self.transactions.look_at(log)

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
