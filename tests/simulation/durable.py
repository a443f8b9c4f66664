"""The facts that one service has on disk, by its journal's records, over all its lives."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from semel_common.ids import TopicPartition
from semel_common.record_batches import sequence_numbers
from semel_coordinator.transactions.machine.joint.joint_entities import (
    JointId,
    JointIdExpired,
    JointPoolShrunk,
)

Transaction = tuple[int, int]
EXPIRATION_MS = 10_500
"""How long idle producers are remembered."""
_WRITES_NO_MORE = -1
"""In place of a sequence: the log has forgotten the epoch, so the epoch may write nothing."""

JointFact = JointId | JointPoolShrunk | JointIdExpired
"""The records that change the known joint transactions."""


@dataclass(slots=True)
class Durable:
    """The facts in one service's journal so far, over all its lives."""

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
    owners: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Whose versions count now."""
    """The last committed one by id of joint transactions, and owner."""
    logs: dict[tuple[str, int], int] = field(default_factory=dict)
    """Log by (topic id, partition)."""
    fences: dict[tuple[Any, int], int] = field(default_factory=dict)
    """By (log, producer id)."""
    sequences: dict[tuple[Any, int], tuple[int, int]] = field(default_factory=dict)
    """Epoch and next sequence by (log, producer id)."""

    heard: dict[tuple[Any, int], float] = field(default_factory=dict)
    """When (log, producer id) was heard of last, in event-loop time."""

    def wrote(
        self, log: object, transaction: Transaction, sequence: int, count: int
    ) -> Iterator[str]:
        """Note a write; yield its violations: sequences are dense, epochs go forward."""
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
        self._hear(log, producer_id)
        following = (sequence + count) % sequence_numbers.SEQUENCES
        self.sequences[log, producer_id] = (epoch, following)

    def go_on_from(self, other: "Durable", theirs: int, ours: int) -> None:
        """Take over the facts of a log from the journal of its former leader."""
        self.log_ends[ours] = other.log_ends.get(theirs, 0)
        for mine, known in (
            (self.stable, other.stable),
            (self.log_starts, other.log_starts),
        ):
            if theirs in known:
                mine[ours] = known[theirs]
        self.open |= {(ours, key): at for (log, key), at in other.open.items() if log == theirs}
        self.ended |= {(ours, key): at for (log, key), at in other.ended.items() if log == theirs}
        self.fences |= {(ours, key): at for (log, key), at in other.fences.items() if log == theirs}
        self.sequences |= {
            (ours, key): at for (log, key), at in other.sequences.items() if log == theirs
        }
        self.heard |= {(ours, key): at for (log, key), at in other.heard.items() if log == theirs}

    def fence(self, log: object, producer_id: int, fence: int) -> None:
        """Note that a fence rose."""
        self._hear(log, producer_id)
        before = self.fences.get((log, producer_id), 0)
        self.fences[log, producer_id] = max(before, fence)

    def forget(self, log: object, producer_id: int) -> Iterator[str]:
        """Note that a producer was forgotten; yield a violation if it wrote just now.

        If that was not too early, nothing binds it any more: a zombie that has slept for so long
        may write what its coordinator has aborted long ago. Clocks that are wrong make it half as
        long at worst.
        """
        idle_s = asyncio.get_running_loop().time() - self.heard.get((log, producer_id), 0.0)
        if idle_s * 1_000 >= EXPIRATION_MS:
            self.fences.pop((log, producer_id), None)
            self.sequences.pop((log, producer_id), None)
        elif idle_s * 1_000 < EXPIRATION_MS / 2:
            yield f"producer {producer_id} is forgotten in {log}, heard of {idle_s:.1f} s before"

    def _hear(self, log: object, producer_id: int) -> None:
        self.heard[log, producer_id] = asyncio.get_running_loop().time()

    def go_back(self, log: object, producer_id: int, current_epoch: int) -> None:
        """Let epochs that were never given out count no more; those before the current one end."""
        self.fence(log, producer_id, current_epoch)
        epoch, _ = self.sequences.get((log, producer_id), (-1, 0))
        if epoch > current_epoch:
            self.sequences[log, producer_id] = (current_epoch, _WRITES_NO_MORE)

    def joint(self, record: JointFact) -> Iterator[str]:
        """Note the versions of joint transactions; yield their violations."""
        match record:
            case JointId():
                yield from self._joint_id(record)
            case JointIdExpired():
                yield from self._joint_expired(record)
            case JointPoolShrunk():
                for producer_id in record.producer_ids:
                    self.epochs.pop(producer_id, None)

    def _joint_id(self, record: JointId) -> Iterator[str]:
        name, committed = record.transactional_id, record.committed_version
        before = self.versions.get((name, record.owner), -1)
        if committed < before:
            yield f"{name}: version {before} is committed no more"
        if 0 <= record.open_version <= committed:
            yield f"{name}: version {record.open_version} is open, and committed"
        self.versions[name, record.owner] = committed
        self.owners[name] = (name, record.owner)

    def _joint_expired(self, record: JointIdExpired) -> Iterator[str]:
        """Note that an id is forgotten; yield the violations."""
        name = record.transactional_id
        committed = self.versions[self.owners.pop(name)]
        if committed >= 0:
            yield f"{name}: version {committed} is forgotten"
        for key in [version for version in self.versions if version[0] == name]:
            del self.versions[key]
