"""Arguments and answers of the machine: plain values."""

from collections.abc import Callable, Mapping
from enum import IntEnum

from msgspec import Struct

from semel_broker.machine.log.aborted_index import AbortedIndex
from semel_broker.machine.records import OffsetRange, OpenTransaction
from semel_common.ids import TopicPartition


class IsolationLevel(IntEnum):
    """What a reader sees of transactions; the numbers of ``semel.broker.v1.IsolationLevel``."""

    READ_COMMITTED = 1
    READ_UNCOMMITTED = 2


class BatchOutcome(IntEnum):
    """What has become of a batch; the numbers of ``semel.broker.v1.BatchOutcome``."""

    NOT_TRANSACTIONAL = 1
    OPEN = 2
    COMMITTED = 3
    ABORTED = 4


class PartitionName(Struct, frozen=True, kw_only=True):
    """How a caller names a partition: topic by name, by id, or both, which must agree."""

    topic: str
    topic_id: str
    partition: int


class BatchHeader(Struct, frozen=True, kw_only=True):
    """What the machine sees of a batch."""

    record_count: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool
    size_bytes: int
    """Of its payload."""
    crc32c: int
    """The same in a repeat as in its original. Of plain records: of the request that has them."""


class ProducePartition(Struct, frozen=True, kw_only=True):
    """Batches for one partition, taken or refused together."""

    name: PartitionName
    batches: tuple[BatchHeader, ...]
    expected_base_offset: int | None = None
    """Where the log must end for them to be taken; None: anywhere."""


class Appended(Struct, frozen=True, kw_only=True):
    """Where the batches of one partition are."""

    log_id: int
    partition: TopicPartition
    base_offset: int
    """Of the first batch; of a repeat: where it was stored before."""
    log_start_offset: int
    base_offsets: tuple[int | None, ...]
    """Of each batch that was given; None for a repeat, which is not stored again."""


class Outcome(Struct, frozen=True, kw_only=True):
    """The outcome of one transaction, for one partition: a marker, or an inquiry's answer."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    current_epoch: int | None = None
    """Set if ``producer_epoch`` was never given out: the producer's current epoch."""


class DeletePosition(Struct, frozen=True):
    """Up to where to delete in one partition."""

    name: PartitionName
    before_offset: int | None
    """None: all that is stable."""


class Deleted(Struct, frozen=True, kw_only=True):
    """What a deletion has left of one partition."""

    partition: TopicPartition
    log_start_offset: int
    deleted_offsets: int
    """How many offsets were cut off, markers and aborted records included."""


class FetchPosition(Struct, frozen=True):
    """Where to read in one partition."""

    name: PartitionName
    fetch_offset: int


class LogStart:
    """The start of a log: shared with its readers, which have to see it move."""

    __slots__ = ("offset",)

    def __init__(self, offset: int) -> None:
        self.offset = offset


class LogPlace(Struct, frozen=True, kw_only=True):
    """Where a log lies, and where batches of it do."""

    log_id: int
    topic: str
    partition: TopicPartition
    log_start: LogStart
    gaps_now: Callable[[], tuple[OffsetRange, ...]]
    """A pass of compaction may begin while a reader reads."""

    @property
    def gaps(self) -> tuple[OffsetRange, ...]:
        """Where batches may be missing; see ``gaps.py``."""
        return self.gaps_now()


class ReadPlan(Struct, frozen=True, kw_only=True):
    """What may be read of one log. ``aborted`` keeps what it says about offsets below ``upto``."""

    place: LogPlace
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    upto: int
    sparse_below: int = 0
    """Batches below it may have lost records to compaction: only payloads tell which."""
    aborted: AbortedIndex
    open_transactions: Mapping[tuple[int, int], OpenTransaction] | None = None
    """Those of the moment of the plan, by producer id and epoch; None: the reader asks for no
    outcomes."""

    @property
    def log_id(self) -> int:
        """Names the log in the store."""
        return self.place.log_id

    @property
    def partition(self) -> TopicPartition:
        """The partition whose log it is."""
        return self.place.partition

    @property
    def log_start(self) -> LogStart:
        """Where the log starts now: past ``log_start_offset`` if it was cut since."""
        return self.place.log_start
