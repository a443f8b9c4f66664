"""Transactions in the partitions that are led here: which are open, and how they end."""

from collections.abc import Sequence

from semel_broker.machine.descriptions import open_transactions_of
from semel_broker.machine.limits import LogLimits
from semel_broker.machine.log.partition_log import PartitionLog
from semel_broker.machine.log_directory import LogDirectory
from semel_broker.machine.markers import OutcomeDecisions
from semel_broker.machine.records import Record
from semel_broker.machine.values import Outcome
from semel_common.errors import SemelError
from semel_common.ids import TopicPartition
from semel_runtime.machine import Result
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochs
from semel_runtime.participant.inquiry import OpenCursor, OpenSince, OpenTransactionAt, oldest


class LogTransactions:
    """Ends transactions in logs, and finds the open ones."""

    def __init__(
        self, logs: LogDirectory, coordinator_epochs: CoordinatorEpochs, limits: LogLimits
    ) -> None:
        self._logs = logs
        self._coordinator_epochs = coordinator_epochs
        self._limits = limits
        self._open: dict[int, PartitionLog] = {}
        """Logs with open transactions, by id: few of all, and looked for several times a second."""

    def write_txn_markers(
        self, outcomes: Sequence[Outcome], *, now_ms: int
    ) -> Result[list[SemelError | None], Record]:
        """Close transactions, each at one partition; answers why an outcome was refused, or None.

        Idempotent. The answers to inquiries are applied in the same way.
        """
        decisions = OutcomeDecisions(self._logs, self._coordinator_epochs.check(), now_ms=now_ms)
        refusals = decisions.decide_all(outcomes)
        return Result(refusals, decisions.records)

    def transactions_to_inquire(
        self, *, now_ms: int
    ) -> Result[list[OpenTransactionAt[TopicPartition]], Record]:
        """Return the open transactions to ask about, in the order of logs and of first offsets."""
        is_due = self._limits.inquiry.is_due
        return Result(
            [
                OpenTransactionAt(
                    log.partition, open_transaction.producer_id, open_transaction.producer_epoch
                )
                for _, log in sorted(self._open.items())
                if self._logs.is_led(log)
                for open_transaction in log.open_transactions.values()
                if is_due(
                    now_ms=now_ms,
                    start_ms=open_transaction.start_ms,
                    superseded_ms=open_transaction.superseded_ms,
                )
            ]
        )

    def open_transactions(
        self, *, open_since_ms: int, limit: int, after: OpenCursor | None = None
    ) -> Result[list[OpenSince[TopicPartition]], Record]:
        """Return the transactions that have been open since a time or longer, the oldest first."""
        found = open_transactions_of(self._logs.led_here())
        return Result(oldest(found, open_since_ms=open_since_ms, limit=limit, after=after))

    def has_open_transactions(self) -> bool:
        """Whether any transaction is open."""
        return bool(self._open)

    # -- replay --------------------------------------------------------------------------------

    def look_at(self, log: PartitionLog) -> None:
        """See a log after a record that may have opened or ended a transaction."""
        if log.open_transactions:
            self._open[log.log_id] = log
        else:
            self._open.pop(log.log_id, None)

    def forget(self, log_id: int) -> None:
        """Know nothing of a log that was dropped."""
        self._open.pop(log_id, None)
