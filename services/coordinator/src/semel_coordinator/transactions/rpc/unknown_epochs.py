"""The log's line about a producer epoch that no coordinator has given out."""

import structlog

from semel_coordinator.transactions.machine import TransactionKey

log = structlog.get_logger(__name__)


def log_never_given(key: TransactionKey, request: str, current_epoch: int) -> None:
    """Log that a request named an epoch above the current one."""
    log.error(
        "producer epoch was never given out: a broken or hostile client",
        request=request,
        producer_id=key.producer_id,
        producer_epoch=key.producer_epoch,
        current_epoch=current_epoch,
    )
