"""What a topic of income holds, by the batches and markers in its logs: who committed, who aborted.

The broker hides aborted records from readers of committed ones; here they are counted too. No I/O.
"""

import json
from dataclasses import dataclass, field
from decimal import Decimal

from semel.common.v1.records_pb2 import ControlRecord, RecordBatch
from semel_common.record_batches.batches import decode_records


@dataclass(slots=True)
class Income:
    """Lines of income, and their sums."""

    lines: int = 0
    total: Decimal = Decimal(0)

    def add(self, other: "Income") -> None:
        """Take others in."""
        self.lines += other.lines
        self.total += other.total


Transaction = tuple[int, int]
"""Producer id and producer epoch."""


@dataclass(slots=True)
class Tally:
    """Batches taken so far; each partition's in the order of its log."""

    visible: Income = field(default_factory=Income)
    """Of committed transactions, and of no transaction."""
    aborted_lines: int = 0
    committed: set[Transaction] = field(default_factory=set)
    aborted: set[Transaction] = field(default_factory=set)
    _open: dict[tuple[int, Transaction], Income] = field(default_factory=dict)
    """Written to a partition, with no marker there yet."""

    def take(self, partition: int, batch: RecordBatch) -> None:
        """Count one batch."""
        transaction = (batch.producer_id, batch.producer_epoch)
        if batch.control:
            written = self._open.pop((partition, transaction), Income())
            self._end(transaction, written, ControlRecord.FromString(batch.payload).committed)
        elif batch.transactional:
            self._open.setdefault((partition, transaction), Income()).add(_income(batch))
        else:
            self.visible.add(_income(batch))

    def _end(self, transaction: Transaction, written: Income, committed: bool) -> None:
        if committed:
            self.committed.add(transaction)
            self.visible.add(written)
        else:
            self.aborted.add(transaction)
            self.aborted_lines += written.lines


def _income(batch: RecordBatch) -> Income:
    values = decode_records(batch).values
    total = sum((Decimal(json.loads(value or b"")["price"]) for value in values), Decimal(0))
    return Income(lines=batch.record_count, total=total)
