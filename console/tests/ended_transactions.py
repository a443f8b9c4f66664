"""An ended transaction, and the page of an old one: tests change the fields that they check."""

from aiosemel import (
    EndedTransaction,
    KnownOutcome,
    TransactionalIdDescription,
    TransactionHistory,
)
from semel_console.views.transaction_view import Asked
from semel_console.views.unfinished_view import Told

ENDED = EndedTransaction(
    transactional_id="till",
    producer_id=7,
    producer_epoch=3,
    txn_version=None,
    outcome=KnownOutcome.COMMITTED,
    abort_reason=None,
    start_time_ms=5,
    prepared_time_ms=None,
    decided_time_ms=6,
    completed_time_ms=7,
    participants=(),
    participant_count=0,
    traceparent="",
    client=None,
    operator=None,
    position="1",
)

DESCRIBED = TransactionalIdDescription(
    transactional_id="till",
    producer_id=7,
    producer_epoch=300,
    transaction_timeout_ms=60_000,
    transactions=(),
)
ASKED = Asked(
    transactional_id="till",
    described=DESCRIBED,
    epoch=3,
    producer_id=None,
    outcome=None,
    history=TransactionHistory(transactions=(), behind=None),
    told=Told(),
    ended_writes={},
)
"""What the page of epoch 3 has asked: it is not open, and the history has no entry of it."""
