"""Settings of the partition broker."""

from typing import Annotated

from pydantic import Field

from semel_broker.compaction.compactor import CompactorOptions
from semel_broker.compaction.keys import KEY_BYTES
from semel_broker.loops.scrub import ScrubOptions
from semel_broker.machine import LogLimits
from semel_broker.rpc.fetch import FetchLimits
from semel_broker.rpc.request_batches import ProduceLimits
from semel_runtime.config import Count
from semel_runtime.participant.participant_settings import ParticipantSettings


class BrokerSettings(ParticipantSettings):
    """What a partition broker needs to know."""

    message_max_bytes: Annotated[int, Field(ge=1_024, le=16 << 20)] = 1_048_588
    """The largest payload of a record batch, in bytes; a topic's max.message.bytes takes
    precedence."""
    batch_records_max: Count = 1 << 20
    """The most records of a record batch."""
    fetch_max_bytes: Annotated[int, Field(ge=1_024, le=32 << 20)] = 16 << 20
    """The largest answer of one Fetch, in bytes; a single batch may exceed it."""
    fetch_in_progress_max_bytes: Annotated[int, Field(ge=1 << 20)] = 128 << 20
    """The bytes that all unanswered Fetch calls together may hold; past it, no call waits for more
    records, and the broker refuses new calls."""
    log_tail_cache_bytes: Annotated[int, Field(ge=0)] = 32 << 20
    """The memory for the newest batches, in bytes: a reader that follows a log reads them from
    there.
    """
    partition_producers_max: Count = 1_000_000
    """Producer ids that one partition remembers; past it, new ones are refused."""
    partition_open_transactions_max: Count = 100_000
    """Transactions that may be open in one partition; past it, new ones are refused."""

    log_retention_check_interval_ms: Count = 300_000
    """How often to look for records that are too old or too many, in milliseconds."""
    log_cleaner_backoff_ms: Count = 15_000
    """How often to look for logs to compact, in milliseconds."""
    log_cleaner_dedupe_buffer_size: Annotated[int, Field(ge=1 << 16)] = 64 << 20
    """The memory for keys in compaction, in bytes. When it is full, the rest is left to the next
    pass."""

    log_check_interval_ms: Count = 86_400_000
    """How long to wait before all partitions are read to find damage, in milliseconds."""
    log_check_bytes_per_second: Annotated[int, Field(ge=0)] = 4 << 20
    """The rate of that read, in bytes per second, at most; 0: no read."""

    def scrub_options(self) -> ScrubOptions:
        """Return how often to look for damage, and how fast."""
        return ScrubOptions(
            interval_ms=self.log_check_interval_ms,
            bytes_per_second=self.log_check_bytes_per_second,
        )

    def log_limits(self) -> LogLimits:
        """Return what a partition may hold."""
        return LogLimits(
            producers_max=self.partition_producers_max,
            open_transactions_max=self.partition_open_transactions_max,
            message_max_bytes=self.message_max_bytes,
            producer_expiration_ms=self.producer_id_expiration_ms,
            inquiry=self.inquiry_times(),
        )

    def compactor_options(self) -> CompactorOptions:
        """Return when to compact, and how much a pass may hold."""
        return CompactorOptions(
            backoff_ms=self.log_cleaner_backoff_ms,
            keys_max=self.log_cleaner_dedupe_buffer_size // KEY_BYTES,
        )

    def produce_limits(self) -> ProduceLimits:
        """Return what a Produce request may hold."""
        return ProduceLimits(batch_records_max=self.batch_records_max)

    def fetch_limits(self) -> FetchLimits:
        """Return how much a Fetch may read."""
        return FetchLimits(
            fetch_max_bytes=self.fetch_max_bytes,
            in_progress_max_bytes=self.fetch_in_progress_max_bytes,
        )
