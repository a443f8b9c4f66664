"""The options of clients whose calls must end soon."""

from aiosemel import ConsumerOptions, OffsetReset, PoolOptions, ProducerOptions, TransformOptions

PRODUCERS = ProducerOptions(
    request_timeout_ms=300,
    delivery_timeout_ms=1_500,
    max_block_ms=800,
    cancelled_commit_grace_ms=100,
    registration_delay_ms=1,
)
POOLS = PoolOptions(acquire_timeout_ms=800, close_timeout_ms=100)
CONSUMERS = ConsumerOptions(
    auto_offset_reset=OffsetReset.EARLIEST, fetch_max_wait_ms=50, max_poll_interval_ms=10_000
)
TRANSFORMS = TransformOptions(poll_timeout_ms=50, retry_backoff_ms=5, retry_backoff_max_ms=20)
