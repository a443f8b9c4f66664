"""Moving a partition: what its old leader gives, and what becomes of that at the new one. Pure.

Theory of operation. The controller's metadata say that a partition moves, and to which broker. That
broker copies the log while the old leader goes on. Once it has nearly everything, it asks the old
leader to hand the log over: from that decision on the log is not served any more and nothing in it
changes. It copies the rest, takes over what else was known (producers, open and aborted
transactions, segments, the newest coordinator epochs), and tells the controller, which makes it the
leader under a higher epoch.

Who leads is decided by the controller alone. If it gives the move up, it raises the epoch too: the
old leader serves again what it has handed over, and the copy is dropped. So each step may be
repeated after any crash, and at no time do two brokers serve a partition. What was taken over as a
whole is never taken over again: the controller may hear of it at any time, and make it what is
served. While a log moves it is not compacted: the copy may have a batch as it was before, whose
transaction was aborted, and must know that as long as the batch is there.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from semel_broker.machine.log.partition_log import PartitionLog, known_gaps
from semel_broker.machine.log_directory import LogDirectory
from semel_broker.machine.records import (
    AbortedTransaction,
    LogCompacted,
    LogCopied,
    LogSegment,
    LogState,
    LogTakenOver,
    OpenTransaction,
    ProducerState,
    Record,
)
from semel_broker.machine.values import LogPlace
from semel_common.errors import (
    CorruptMessageError,
    FencedLeaderEpochError,
    NotLeaderOrFollowerError,
)
from semel_common.ids import TopicPartition
from semel_runtime.journal.contract import StoredBatch
from semel_runtime.machine import Result
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochs, CoordinatorEpochSeen

_ENTITIES = (LogCompacted, OpenTransaction, AbortedTransaction, LogSegment)


class Move(Struct, frozen=True, kw_only=True):
    """A partition on its way, as both brokers name it."""

    partition: TopicPartition
    leader_epoch: int
    """Of the broker that it leaves."""
    moving_to: int
    """The broker that takes over."""


class Copy(Struct, frozen=True, kw_only=True):
    """A log that moves here, as far as it is."""

    move: Move
    topic: str
    log_id: int
    leader_id: int
    """The broker that has the rest."""
    log_end_offset: int
    whole: bool
    """Whether all of it is here: only the controller does not know yet."""


class CopyPlan(Struct, frozen=True, kw_only=True):
    """What may be copied of one log."""

    place: LogPlace
    from_offset: int
    upto: int
    """Where the log ends."""
    handed_over: bool
    """Whether it is not served any more."""


class HandedOver(Struct, frozen=True, kw_only=True):
    """The state of a log at its hand-over."""

    entities: tuple[Record, ...]
    """The log first, then what does not change any more, in the same order every time, then the
    newest coordinator epochs."""
    log_end_offset: int


class LogMoves:
    """Gives the logs that move away, and takes the logs that move here."""

    def __init__(
        self, logs: LogDirectory, coordinators: CoordinatorEpochs, instance_id: int
    ) -> None:
        self._logs = logs
        self._coordinators = coordinators
        self._instance_id = instance_id

    # -- at the old leader -----------------------------------------------------------------------

    def copy_log(self, move: Move, from_offset: int) -> Result[CopyPlan, Record]:
        """Return what the new leader may copy; raises NotLeaderOrFollowerError."""
        log = self._leaving(move)
        return Result(
            CopyPlan(
                place=log.place,
                from_offset=max(from_offset, log.log_start_offset),
                upto=log.log_end_offset,
                handed_over=log.identity.handed_over,
            )
        )

    def hand_over_log(self, move: Move) -> Result[None, Record]:
        """Serve a partition no more. Raises NotLeaderOrFollowerError."""
        log = self._leaving(move)
        is_new = not log.identity.handed_over
        return Result(None, [replace(log.state(), handed_over=True)] if is_new else ())

    def handed_over(self, move: Move) -> HandedOver:
        """Return the state of a handed-over log, which does not change any more.

        Raises NotLeaderOrFollowerError.
        """
        log = self._leaving(move)
        assert log.identity.handed_over, "until then it changes"
        return HandedOver(
            entities=(log.state(), *_known(log), *_heard(self._coordinators)),
            log_end_offset=log.log_end_offset,
        )

    def _leaving(self, move: Move) -> PartitionLog:
        """Return the log that makes this move."""
        log = self._logs.at(move.partition)
        leader = self._logs.leader(move.partition)
        if (
            log is None
            or not self._logs.is_own(log)
            or log.identity.leader_epoch != move.leader_epoch
            or (leader.leader_epoch, leader.moving_to) != (move.leader_epoch, move.moving_to)
        ):
            raise NotLeaderOrFollowerError(
                f"partition {move.partition.partition} of topic {move.partition.topic_id} does not"
                f" move from here to broker {move.moving_to} under leader epoch {move.leader_epoch}"
            )
        return log

    # -- at the new leader -----------------------------------------------------------------------

    def copies(self) -> Result[list[Copy], Record]:
        """Return the logs that move here."""
        return Result([self._copy(log) for log in self._logs.copies()])

    def _copy(self, log: PartitionLog) -> Copy:
        return Copy(
            move=Move(
                partition=log.partition,
                leader_epoch=log.identity.leader_epoch,
                moving_to=self._instance_id,
            ),
            topic=log.identity.topic,
            log_id=log.log_id,
            leader_id=log.identity.leader_id,
            log_end_offset=log.log_end_offset,
            whole=log.identity.taken_over,
        )

    def log_copied(
        self, copy: Copy, batches: Sequence[StoredBatch], next_offset: int
    ) -> Result[None, Record]:
        """Store a piece of a log that moves here.

        Raises FencedLeaderEpochError if the log does not move here any more.
        """
        log = self._arriving(copy)
        assert log.log_end_offset == copy.log_end_offset <= next_offset, (
            "pieces come in their order"
        )
        return Result(None, (LogCopied(log_id=log.log_id, log_end_offset=next_offset),), batches)

    def log_taken_over(
        self, copy: Copy, entities: Sequence[Record], *, whole: bool, now_ms: int
    ) -> Result[None, Record]:
        """Make a piece of the handed-over state that of a copy; ``whole``: the last piece.

        Producers are idle from now on: if the old leader's clock was behind, they would be
        forgotten at once, while what they sent is still under way.
        Raises FencedLeaderEpochError, and CorruptMessageError if the copy is not the whole log.
        """
        log = self._arriving(copy)
        records = [*self._taken(log, entities, now_ms)]
        if whole:
            records.append(replace(log.state(), taken_over=True))
        return Result(None, records)

    def _taken(
        self, log: PartitionLog, entities: Iterable[Record], now_ms: int
    ) -> Iterator[Record]:
        for entity in entities:
            if isinstance(entity, LogState):
                _check_whole(log, entity)
                yield LogTakenOver(
                    log_id=log.log_id,
                    log_start_offset=entity.log_start_offset,
                    log_end_offset=entity.log_end_offset,
                    gaps=known_gaps(entity),
                )
            elif isinstance(entity, ProducerState):
                yield replace(entity, log_id=log.log_id, last_timestamp_ms=now_ms)
            elif isinstance(entity, _ENTITIES):
                yield replace(entity, log_id=log.log_id)
            elif isinstance(entity, CoordinatorEpochSeen):
                if entity.coordinator_epoch > self._coordinators.newest(
                    entity.transaction_log_partition
                ):
                    yield entity
            else:
                raise CorruptMessageError(f"{type(entity).__name__} is no part of a log's state")

    def _arriving(self, copy: Copy) -> PartitionLog:
        log = self._logs.get(copy.log_id)
        if log is None or self._logs.is_own(log) or log.identity.taken_over:
            raise FencedLeaderEpochError(
                f"partition {copy.move.partition.partition} of topic {copy.topic!r} does not move"
                " here any more"
            )
        return log


def _known(log: PartitionLog) -> Iterator[Record]:
    """Yield what a log's snapshot has but the log, in an order that no restart changes."""
    producers: list[ProducerState] = []
    for entity in log.snapshot():
        if isinstance(entity, ProducerState):
            producers.append(entity)
        elif not isinstance(entity, LogState):
            yield entity
    yield from sorted(producers, key=lambda each: each.producer_id)


def _heard(coordinators: CoordinatorEpochs) -> list[CoordinatorEpochSeen]:
    """Return the newest coordinator epochs."""
    seen = (each for _, each in coordinators.snapshot())
    return sorted(seen, key=lambda each: each.transaction_log_partition)


def _check_whole(log: PartitionLog, state: LogState) -> None:
    if log.log_end_offset != state.log_end_offset:
        raise CorruptMessageError(
            f"the copy of partition {state.partition} of topic {state.topic!r} ends at offset"
            f" {log.log_end_offset}, the log at {state.log_end_offset}"
        )
