"""What one service has on disk, by its journal, over all its lives: records in, facts out."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from semel_common import sequences
from semel_common.ids import TopicPartition
from semel_coordinator.transactions.machine.joint.entities import JointId

Transaction = tuple[int, int]
_WRITES_NO_MORE = -1
"""In place of a sequence: what an epoch wrote here was forgotten, so it may write nothing."""


@dataclass(slots=True)
class Durable:
    """What one service's journal has said so far, over all its lives."""

    next_offset: int = 0
    open: dict[tuple[Any, Transaction], int] = field(default_factory=dict)
    """First offset by (log, transaction)."""
    ended: dict[tuple[Any, Transaction], bool] = field(default_factory=dict)
    log_ends: dict[int, int] = field(default_factory=dict)
    stable: dict[int, int] = field(default_factory=dict)
    log_starts: dict[int, int] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    """Current epoch by producer."""
    coordinator_epochs: dict[int, int] = field(default_factory=dict)
    group_epochs: dict[str, int] = field(default_factory=dict)
    coordinators_heard: dict[int, int] = field(default_factory=dict)
    """Newest coordinator epoch that a participant has heard, by transaction-log partition."""
    pending: dict[tuple[str, Transaction], set[TopicPartition]] = field(default_factory=dict)
    """Partitions that a transaction may move, by group and transaction."""
    held: dict[tuple[str, str], frozenset[TopicPartition]] = field(default_factory=dict)
    """By group and member."""
    versions: dict[tuple[str, str], int] = field(default_factory=dict)
    """The last committed one by id of joint transactions, and owner."""
    logs: dict[tuple[str, int], int] = field(default_factory=dict)
    """Log by (topic id, partition)."""
    fences: dict[tuple[Any, int], int] = field(default_factory=dict)
    """By (log, producer id)."""
    sequences: dict[tuple[Any, int], tuple[int, int]] = field(default_factory=dict)
    """Epoch and next sequence by (log, producer id)."""

    def wrote(
        self, log: object, transaction: Transaction, sequence: int, count: int
    ) -> Iterator[str]:
        """Note what was written; yield what is wrong: sequences are dense, epochs go forward."""
        producer_id, epoch = transaction
        before, expected = self.sequences.get((log, producer_id), (-1, 0))
        fence = self.fences.get((log, producer_id), 0)
        if epoch < fence:
            yield f"{transaction} wrote in {log}, below the fence {fence}"
        if epoch < before:
            yield f"{transaction} wrote in {log} after epoch {before}"
        if epoch > before:
            expected = 0
        if sequence != expected:
            yield f"{transaction} wrote in {log} at sequence {sequence}, not {expected}"
        following = (sequence + count) % sequences.SEQUENCES
        self.sequences[log, producer_id] = (epoch, following)

    def fence(self, log: object, producer_id: int, fence: int) -> None:
        """Note that a fence rose."""
        before = self.fences.get((log, producer_id), 0)
        self.fences[log, producer_id] = max(before, fence)

    def go_back(self, log: object, producer_id: int, current_epoch: int) -> None:
        """Let epochs that were never given out count no more; those before the current one end."""
        self.fence(log, producer_id, current_epoch)
        epoch, _ = self.sequences.get((log, producer_id), (-1, 0))
        if epoch > current_epoch:
            self.sequences[log, producer_id] = (current_epoch, _WRITES_NO_MORE)

    def joint(self, record: JointId) -> Iterator[str]:
        """Note what versions of joint transactions there are; yield what is wrong with them."""
        name, committed = record.transactional_id, record.committed_version
        before = self.versions.get((name, record.owner), -1)
        if committed < before:
            yield f"{name}: version {before} is committed no more"
        if 0 <= record.open_version <= committed:
            yield f"{name}: version {record.open_version} is open, and committed"
        self.versions[name, record.owner] = committed
