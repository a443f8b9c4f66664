"""Which open transactions to ask their coordinators about (protocol.md, section 6).

Those that are open for a whole interval, and soon after a newer epoch of their producer was seen.
"""

from collections.abc import Iterable, Iterator

from semel_broker.machine.limits import LogLimits
from semel_broker.machine.log import PartitionLog
from semel_broker.machine.records import OpenTransaction


def due(
    logs: Iterable[PartitionLog], *, now_ms: int, limits: LogLimits
) -> Iterator[tuple[PartitionLog, OpenTransaction]]:
    """Yield all that are due, in the order of logs and of first offsets."""
    for log in logs:
        for transaction in log.open_transactions.values():
            if inquire_at_ms(transaction, limits) <= now_ms:
                yield log, transaction


def inquire_at_ms(transaction: OpenTransaction, limits: LogLimits) -> int:
    """Return when a transaction is due."""
    at_ms = transaction.start_ms + limits.transaction_inquiry_interval_ms
    if transaction.superseded_ms is None:
        return at_ms
    return min(at_ms, transaction.superseded_ms + limits.superseded_inquiry_delay_ms)
