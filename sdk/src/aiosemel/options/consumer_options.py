"""Options of a consumer: Kafka's names and defaults, each with its unit.

Options are values, checked when they are made.
"""

from collections.abc import Collection
from dataclasses import dataclass

from aiosemel._consumer.partition_state import OffsetReset
from aiosemel.options.option_checks import check_choice, check_order, check_values
from aiosemel.types.batch_place import BatchPlace
from aiosemel.types.isolation import IsolationLevel
from semel_common.record_batches.payload_limits import READABLE_MAX_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOptions:
    """Options of one consumer."""

    isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED
    """Which transactions the consumer sees. Kafka's default is READ_UNCOMMITTED."""
    auto_offset_reset: OffsetReset = OffsetReset.LATEST
    """Where to start in a partition for which the group has committed no offset, or one that the
    log does not hold any more."""
    enable_auto_commit: bool = False
    """Whether ``poll`` commits the records of earlier polls, every ``auto_commit_interval_ms``, and
    when partitions are given up (but not when ``assign`` replaces them). Only the latter commits
    are waited for. Off, other than in Kafka: a timer does not know whether records are processed,
    so a crash loses records that were only polled, and repeats others.
    """
    auto_commit_interval_ms: int = 5_000
    """How often, in milliseconds."""
    max_poll_interval_ms: int = 300_000
    """How long a member may go without calling ``poll`` before it leaves its group, and how long it
    may take to give up partitions, in milliseconds. Heartbeats do not depend on ``poll``."""
    fetch_min_bytes: int = 1
    """How much a broker waits for before it answers, in bytes."""
    fetch_max_wait_ms: int = 500
    """How long a broker waits for it, in milliseconds."""
    fetch_max_bytes: int = 16_777_216
    """About how much to fetch from one broker at once, in bytes."""
    max_partition_fetch_bytes: int = 1_048_576
    """About how much to fetch of one partition at once, in bytes."""
    prefetch_max_bytes: int = 33_554_432
    """About how many bytes of records may wait for ``poll``, of all partitions together; and about
    how many one ``poll`` returns, where compressed records count with their size after opening.
    """
    check_crcs: bool = True
    """Whether every batch is compared with its checksum."""
    opened_batch_max_bytes: int = READABLE_MAX_BYTES
    """The largest batch that is opened, in bytes after decompression. A larger one is an error."""
    skip_batches: Collection[tuple[str, int, int]] = ()
    """Batches to go on without when they cannot be opened, each as (topic, partition, offset): the
    error names them so. Every other batch that cannot be opened is an error."""
    server_assignor: str = ""
    """How the group's partitions are spread over its members: uniform (as evenly as can be, and as
    few moves as that needs) or range (a stretch of each topic); empty: as the others want, or else
    uniform. The group takes what most members ask for. In Kafka: group.remote.assignor."""
    group_instance_id: str = ""
    """A name for this consumer over its restarts, its own in the group: a static member. A process
    that was killed and starts again has its partitions at once. Without a name, no member reads
    them until the session of the killed process is over: after 45 s by default (the setting
    SEMEL_GROUP_CONSUMER_SESSION_TIMEOUT_MS). When the consumer is closed and comes back within that
    time, it gets its partitions again, and no other partition moves. A second process with the name
    fences the first, whose ``poll`` raises FencedInstanceIdError. Empty: a dynamic member."""
    leave_group_on_close: bool = False
    """Whether a static member that is closed leaves for good, so that other members get its
    partitions at once. Off: they wait for its return for the session time-out. A dynamic member
    always leaves for good."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, with InvalidConfigError."""
        for name, allowed in (
            ("isolation_level", IsolationLevel),
            ("auto_offset_reset", OffsetReset),
        ):
            check_choice(name, getattr(self, name), allowed)
        in_requests = ("fetch_min_bytes", "fetch_max_wait_ms", "max_poll_interval_ms")
        check_values(self, may_be_zero=("fetch_max_wait_ms",), in_requests=in_requests)
        for skip_batch in self.skip_batches:
            BatchPlace.named(skip_batch)
        check_order(self, "max_partition_fetch_bytes", "fetch_max_bytes")


__all__ = ["ConsumerOptions", "IsolationLevel", "OffsetReset"]
