"""Transactions that have ended, as coordinators keep them for a while."""

from dataclasses import dataclass

from aiosemel.types.client_names import client_id_of
from aiosemel.types.offsets import TopicPartition
from aiosemel.types.transaction_outcomes import AbortReason, KnownOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilter:
    """Which ended transactions are wanted: they pass everything that is given."""

    outcome: KnownOutcome | None = None
    """COMMITTED or ABORTED; None: both."""
    abort_reasons: tuple[AbortReason, ...] = ()
    """Of aborted ones; empty: any."""
    transactional_id: str | None = None
    transactional_id_prefix: str = ""
    producer_id: int | None = None
    producer_epoch: int | None = None
    from_time_ms: int | None = None
    """Completed then or later, in milliseconds since 1970-01-01 UTC."""
    before_time_ms: int | None = None
    """Completed before that."""
    topic: str | None = None
    """That wrote to it: a name, or the id of a topic that is gone."""
    partition: int | None = None
    """Of that topic; None: any."""
    group_id: str | None = None
    """That committed offsets of it. Of transactions with many participants, the first 100 are
    known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionClient:
    """A program that wrote a transaction."""

    name: str
    """The instance id of its producer; of a joint transaction: the writer."""
    address: str
    """From where it called last for its producer id; empty: not known."""
    principal: str
    """As whom, such as ``User:ada``; empty: not known."""

    @property
    def client_id(self) -> str:
        """The name that the program gives itself (``ClientOptions.client_id``); empty: none."""
        return client_id_of(self.name)

    def __str__(self) -> str:
        """Return who it is and from where, such as ``billing-3 as User:ada at 10.0.0.7``."""
        who = " as ".join(filter(None, (self.client_id, self.principal))) or self.name
        return f"{who} at {self.address}" if self.address else who


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionOperator:
    """A person, or a program outside, that decided a transaction in its producer's place."""

    name: str
    """In their own words, as the reason is; empty: the request said none."""
    reason: str
    principal: str
    """As the cluster knows the caller."""
    address: str
    """Empty: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedParticipant:
    """One partition or group that a transaction wrote to."""

    partition: TopicPartition | None
    """Of a topic that is gone, the name is its id. None: it is a group."""
    group_id: str | None
    commits: bool
    """Whether it was told to commit."""
    marker_time_ms: int | None
    """When it had taken its marker, in milliseconds since 1970-01-01 UTC; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTransaction:
    """One transaction that has ended: all its markers are written.

    Times are milliseconds since 1970-01-01 UTC, by the coordinator's clock; None: not known.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    txn_version: int | None
    """Of a joint transaction."""
    outcome: KnownOutcome
    """COMMITTED or ABORTED."""
    abort_reason: AbortReason | None
    """None: it was not aborted."""
    start_time_ms: int | None
    """When the coordinator heard of its first participant: of a short transaction, at its end."""
    prepared_time_ms: int | None
    """None: it was not prepared."""
    decided_time_ms: int | None
    completed_time_ms: int | None
    """When the last participant had taken its marker."""
    participants: tuple[EndedParticipant, ...]
    """The first 100 of them, as far as the caller may see them."""
    participant_count: int
    """How many there are."""
    traceparent: str
    """W3C trace context, or empty."""
    client: TransactionClient | None
    """Which program wrote it; None: not known."""
    operator: TransactionOperator | None
    """The operator that decided it in its producer's place; None: no operator did."""
    position: str
    """Its place in the history, for ``behind`` of ``Admin.transaction_history``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionHistory:
    """A part of the history of all coordinators, the last completed transaction first."""

    transactions: tuple[EndedTransaction, ...]
    behind: str | None
    """The ``behind`` of the call for the entries before these; None: these were all."""
