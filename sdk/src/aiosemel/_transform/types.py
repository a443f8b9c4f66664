"""The arguments of ``transform``, and the events that it reports."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from aiosemel._transform.outputs import Outputs
from aiosemel.options.option_checks import check_order, check_values
from aiosemel.types.consumer_records import ConsumerRecord
from aiosemel.types.offsets import TopicPartition
from aiosemel.types.producer_record import ProducerRecord

Made: TypeAlias = Iterable[ProducerRecord] | None
Handler: TypeAlias = Callable[[Sequence[ConsumerRecord], Outputs], Awaitable[Made]]
"""Is given the records of one transaction, partition after partition in offset order, and the
transaction to send to; what it returns is sent too. It may be called again with the same records:
whatever it does beside sending, it must bear that."""
OnPoison: TypeAlias = Callable[[ConsumerRecord, Exception, Outputs], Awaitable[Made]]
"""Is given a record that the handler cannot process, why, and the transaction in which the record
counts as consumed: returning skips it; sending, or returning, something writes it to a dead-letter
topic; raising stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionCommitted:
    """A transaction committed: its outputs become visible, its inputs consumed, exactly once."""

    records_in: int
    records_out: int
    offsets: Mapping[TopicPartition, int]
    """Where the group goes on, by partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionAborted:
    """A transaction did not commit, or its outcome is unknown; its inputs may be read again."""

    records_in: int
    error: Exception
    outcome_unknown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPoisoned:
    """A record goes to ``on_poison``."""

    record: ConsumerRecord
    error: Exception


TransformEvent: TypeAlias = TransactionCommitted | TransactionAborted | RecordPoisoned
OnEvent: TypeAlias = Callable[[TransformEvent], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformStats:
    """The counts of a loop so far."""

    committed: int = 0
    """Transactions that committed."""
    aborted: int = 0
    """Transactions that did not."""
    unknown: int = 0
    """Commits whose outcome was not known at first, or never."""
    records_in: int = 0
    """Records consumed in committed transactions."""
    records_out: int = 0
    """Records sent in committed transactions."""
    poisoned: int = 0
    """Records that were given to ``on_poison`` in committed transactions."""
    producers: int = 0
    """Producers that were made: one, and one more for each that had come to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformOptions:
    """How records become transactions, and what happens when they do not."""

    max_records: int = 500
    """How many records a transaction consumes at most."""
    max_bytes: int = 4_194_304
    """About how much, keys and values, a transaction consumes at most, in bytes."""
    linger_ms: int = 0
    """How long to wait for more records once there is one, in milliseconds."""
    poll_timeout_ms: int = 500
    """How long one poll waits for records, in milliseconds."""
    handler_retries: int = 2
    """How often a record is given to the handler again after it raised, before it is poison."""
    retry_backoff_ms: int = 100
    """The pause after a transaction that did not commit, in milliseconds; doubled each time."""
    retry_backoff_max_ms: int = 5_000
    """The longest such pause, in milliseconds."""
    signal_grace_ms: int = 10_000
    """How long the transaction in hand may go on after a signal, in milliseconds; then it is
    aborted."""
    take_over_when_fenced: bool = False
    """What to do when another instance has taken this transactional id. Off: stop with the error,
    so that two instances with one id do not fence one another for ever. On: take it back. Then the
    instance is no static member of its group by default: one that was killed and starts again waits
    for the session time-out of the group, 45 s by default."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, with InvalidConfigError."""
        check_values(self, may_be_zero=_MAY_BE_ZERO)
        check_order(self, "retry_backoff_ms", "retry_backoff_max_ms")


_MAY_BE_ZERO = (
    "linger_ms",
    "handler_retries",
    "retry_backoff_ms",
    "retry_backoff_max_ms",
    "signal_grace_ms",
)
