"""A transaction that has ended, of which tests change what they look at."""

from aiosemel import EndedTransaction, KnownOutcome

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
