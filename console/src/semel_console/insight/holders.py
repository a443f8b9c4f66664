"""The transaction that holds the last stable offset of a partition."""

from dataclasses import dataclass

from aiosemel import Admin, KnownOutcome, TopicPartition
from aiosemel.errors import AuthorizationError, RetriableError, TransactionalIdNotFoundError
from semel_console.insight.texts import duration_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The transaction at which a last stable offset stands."""

    transactional_id: str
    """Empty: its coordinator does not know it."""
    producer_id: int
    producer_epoch: int
    first_offset: int
    age_ms: int
    time_left_ms: int | None
    is_prepared: bool
    client: str = ""
    """The program that has the transactional id; empty: not known."""

    @property
    def name(self) -> str:
        """The transaction, for people."""
        known = self.transactional_id or f"producer id {self.producer_id}"
        return f"{known}, epoch {self.producer_epoch}"

    @property
    def how_long(self) -> str:
        """For how long it has been open, its program, and the time until its end."""
        by = f", written by {self.client}" if self.client else ""
        held = f"open for {duration_text(self.age_ms)}{by}"
        if self.is_prepared:
            return f"{held}, prepared, waits for its owner"
        if self.time_left_ms is None:
            return held
        return f"{held}, ends in {duration_text(self.time_left_ms)} at the latest"


async def holder_of(admin: Admin, at: TopicPartition) -> Holder | None:
    """Return the transaction at which the last stable offset stands; None: at none."""
    described = await admin.operators.describe_producers(at, limit=1)
    first = next((each for each in described.producers if each.open_transactions), None)
    if first is None:
        return None
    opened = first.open_transactions[0]
    known = await admin.get_transaction_outcome(
        None, opened.producer_epoch, producer_id=first.producer_id
    )
    return Holder(
        transactional_id=known.transactional_id,
        producer_id=first.producer_id,
        producer_epoch=opened.producer_epoch,
        first_offset=opened.first_offset,
        age_ms=opened.age_ms,
        time_left_ms=known.time_left_ms,
        is_prepared=known.outcome is KnownOutcome.PREPARED,
        client=await _client_of(admin, known.transactional_id),
    )


async def _client_of(admin: Admin, transactional_id: str) -> str:
    """Return the program that has an id; empty: it is not known, or this user may not know it."""
    if not transactional_id:
        return ""
    try:
        described = await admin.describe_transactions(transactional_id)
    except (RetriableError, TransactionalIdNotFoundError, AuthorizationError):
        return ""
    return "" if described.client is None else str(described.client)
