"""Journals: durable, fenced sequences of records, and the record batches that ride along."""

from semel_runtime.journal.contract import (
    BatchPosition,
    BatchStore,
    Claim,
    Entry,
    Journal,
    Piece,
    StoredBatch,
)
from semel_runtime.journal.journal_errors import (
    JournalCorruptError,
    JournalError,
    JournalFencedError,
    JournalInUseError,
    JournalOpenError,
    JournalTooLargeError,
    JournalUnknownError,
)

__all__ = [
    "BatchPosition",
    "BatchStore",
    "Claim",
    "Entry",
    "Journal",
    "JournalCorruptError",
    "JournalError",
    "JournalFencedError",
    "JournalInUseError",
    "JournalOpenError",
    "JournalTooLargeError",
    "JournalUnknownError",
    "Piece",
    "StoredBatch",
]
