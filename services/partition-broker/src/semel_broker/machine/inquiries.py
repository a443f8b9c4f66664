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
            if _is_due(transaction, now_ms, limits):
                yield log, transaction


def _is_due(transaction: OpenTransaction, now_ms: int, limits: LogLimits) -> bool:
    """Whether a transaction is due; also if the clock went back, because its age is not known."""
    if not 0 <= now_ms - transaction.start_ms < limits.transaction_inquiry_interval_ms:
        return True
    superseded_ms = transaction.superseded_ms
    return superseded_ms is not None and not (
        0 <= now_ms - superseded_ms < limits.superseded_inquiry_delay_ms
    )
