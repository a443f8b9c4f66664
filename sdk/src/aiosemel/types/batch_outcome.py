"""The outcome of a batch."""

from enum import StrEnum


class BatchOutcome(StrEnum):
    """The outcome of a batch, by the transaction that wrote it."""

    NOT_TRANSACTIONAL = "not_transactional"
    """No transaction wrote it."""
    OPEN = "open"
    """Its transaction may still commit or abort."""
    COMMITTED = "committed"
    """Readers of committed records see it once it is below the last stable offset."""
    ABORTED = "aborted"
