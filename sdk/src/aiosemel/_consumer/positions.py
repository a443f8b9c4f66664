"""The positions of a consumer in its partitions, and the records fetched ahead.

Theory of operation. A partition has two places in its log: the *position*, which is the offset of
the next record that the user gets, and the *fetch offset*, which is where to read next; between the
two lies what was fetched ahead. A partition without a position first gets one: from the group's
committed offset (``AWAITING_COMMITTED``), else from the log's start or end (``AWAITING_RESET``).

Everything that is on its way for a partition carries the generation that the partition had when it
was asked for. A new assignment, a seek or a reset gives it a new generation and throws away what
was fetched ahead: no answer to an older question ever moves a position.

A fetched chunk ends at the ``next_offset`` that the broker answered. The position moves there when
the chunk has been used up, and so crosses the offsets of markers and of aborted records. A fault,
such as an offset that the log does not hold, stands in line behind the chunks before it, so that a
user gets every record that was read before it hears of the fault.

How a chunk becomes records is not known here: it is opened when its first record is wanted, by a
function that is given.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import count
from typing import Generic, NamedTuple

from aiosemel._consumer.partition_state import (
    B,
    Chunk,
    OffsetReset,
    Opened,
    Partition,
    PositionState,
)
from aiosemel.errors import NoOffsetForPartitionError, OffsetOutOfRangeError, SemelError
from aiosemel.types.consumer_records import ColumnBatch, ConsumerRecord
from aiosemel.types.offsets import TopicPartition


class Ticket(NamedTuple):
    """A partition at one generation: what a question was asked for."""

    topic_partition: TopicPartition
    generation: int


class PositionQuestion(NamedTuple):
    """A partition that needs a position."""

    ticket: Ticket
    topic_id: str
    reset: OffsetReset


class FetchPosition(NamedTuple):
    """Where to read next in a partition."""

    ticket: Ticket
    topic_id: str
    offset: int
    is_busy: bool = False
    """Whether a record arrived here since a fetch last waited without a result."""


class Positions(Generic[B]):
    """All partitions that a consumer holds."""

    def __init__(
        self,
        open_batch: Callable[[TopicPartition, B], Opened],
        *,
        policy: OffsetReset,
        prefetch_max_bytes: int,
        partition_max_bytes: int,
    ) -> None:
        """Hold none yet.

        ``open_batch`` may raise a SemelError. About ``prefetch_max_bytes`` are fetched ahead at
        most, and of one partition about twice ``partition_max_bytes``; and about so many are opened
        for one ``take``, however small they were when they came.
        """
        self._open_batch = open_batch
        self._policy = policy
        self._prefetch_max_bytes = prefetch_max_bytes
        self._partition_max_bytes = partition_max_bytes
        self._partitions: dict[TopicPartition, Partition[B]] = {}
        self._taken_last: TopicPartition | None = None
        self._generations = count(1)

    # -- what is held ----------------------------------------------------------------------------

    def __contains__(self, topic_partition: object) -> bool:
        return topic_partition in self._partitions

    def held(self) -> frozenset[TopicPartition]:
        """Return the partitions that are held."""
        return frozenset(self._partitions)

    def assign(self, topic_partition: TopicPartition, topic_id: str) -> None:
        """Hold one more; its position is to be found."""
        assert topic_partition not in self._partitions, f"{topic_partition} is held already"
        self._partitions[topic_partition] = Partition(
            topic_id=topic_id, generation=next(self._generations), reset=self._policy
        )

    def unassign(self, topic_partition: TopicPartition) -> None:
        """Hold one less; what was fetched ahead is thrown away."""
        self._partitions.pop(topic_partition, None)

    def seek(self, topic_partition: TopicPartition, offset: int) -> None:
        """Go on at an offset, wherever the partition was."""
        partition = self._partitions[topic_partition]
        partition.restart(next(self._generations), PositionState.FETCHING)
        partition.start_at(offset)

    def seek_to(self, topic_partition: TopicPartition, reset: OffsetReset) -> None:
        """Go on at the log's start or end; the position is known once it was asked for."""
        partition = self._partitions[topic_partition]
        partition.restart(next(self._generations), PositionState.AWAITING_RESET)
        partition.reset = reset

    def seek_to_committed(self, topic_partition: TopicPartition) -> None:
        """Go on as if newly assigned."""
        partition = self._partitions[topic_partition]
        partition.restart(next(self._generations), PositionState.AWAITING_COMMITTED)

    def pause(self, topic_partition: TopicPartition) -> None:
        """Give nothing of a partition, and fetch nothing, until ``resume``."""
        self._partitions[topic_partition].paused = True

    def resume(self, topic_partition: TopicPartition) -> None:
        """Go on with paused partitions; records that had been fetched are still there."""
        self._partitions[topic_partition].paused = False

    def paused(self) -> frozenset[TopicPartition]:
        """Return the partitions that are paused."""
        return frozenset(each for each, partition in self._partitions.items() if partition.paused)

    def position(self, topic_partition: TopicPartition) -> int | None:
        """Return the offset of the next record for the user, or None: not known yet."""
        return self._partitions[topic_partition].position

    def check(self, topic_partition: TopicPartition) -> None:
        """Raise what is wrong with a partition, if its user is to hear of it."""
        fault = self._partitions[topic_partition].fault
        if fault is not None and not self._resets(fault):
            raise fault

    def topic_ids(self) -> dict[TopicPartition, str]:
        """Return the ids of the topics, as far as they are known."""
        return {each: partition.topic_id for each, partition in self._partitions.items()}

    def positions(self) -> dict[TopicPartition, int]:
        """Return all positions that are known."""
        return {
            topic_partition: partition.position
            for topic_partition, partition in self._partitions.items()
            if partition.position is not None
        }

    # -- what there is to ask --------------------------------------------------------------------

    def awaiting(self, state: PositionState) -> list[PositionQuestion]:
        """Return what to ask for partitions in a state, unless it is asked already."""
        return [
            PositionQuestion(
                Ticket(topic_partition, partition.generation), partition.topic_id, partition.reset
            )
            for topic_partition, partition in self._partitions.items()
            if partition.state is state and partition.waits
        ]

    def fetchable(self) -> list[FetchPosition]:
        """Return where to read next in partitions that have room, unless it is asked already."""
        room = self.partition_max_bytes
        return [
            FetchPosition(
                Ticket(topic_partition, partition.generation),
                partition.topic_id,
                partition.fetch_offset,
                partition.is_busy,
            )
            for topic_partition, partition in self._partitions.items()
            if partition.state is PositionState.FETCHING
            and not partition.paused
            and partition.waits
            and partition.buffered_bytes < room
        ]

    @property
    def partition_max_bytes(self) -> int:
        """How much to fetch of a partition at once, so that all together keep the bound."""
        share = self._prefetch_max_bytes // (2 * max(1, len(self._partitions)))
        return max(1, min(self._partition_max_bytes, share))

    def is_current(self, ticket: Ticket) -> bool:
        """Whether a question is still of interest."""
        return self._current(ticket) is not None

    def asked(self, tickets: Iterable[Ticket]) -> None:
        """Note that questions are on their way."""
        for ticket in tickets:
            partition = self._current(ticket)
            if partition is not None:
                partition.asked = True

    def given_up(self, tickets: Iterable[Ticket]) -> None:
        """Note that questions are not on their way any more, whatever became of them."""
        for ticket in tickets:
            partition = self._current(ticket)
            if partition is not None:
                partition.asked = False

    # -- what was answered: ignored for tickets that are not current -----------------------------

    def committed(self, ticket: Ticket, offset: int | None) -> None:
        """Start at the group's committed offset; if there is none, as the policy says."""
        partition = self._current(ticket)
        if partition is None:
            return
        if offset is not None:
            partition.start_at(offset)
        elif self._policy is not OffsetReset.NONE:
            partition.state, partition.reset = PositionState.AWAITING_RESET, self._policy
        else:
            partition.fault = NoOffsetForPartitionError(
                f"no offset is committed for {ticket.topic_partition}, and auto_offset_reset is"
                " none: commit or seek to an offset, or choose another reset",
                topic=ticket.topic_partition.topic,
                partition=ticket.topic_partition.partition,
            )

    def identify(self, ticket: Ticket, topic_id: str) -> None:
        """Know which topic a partition belongs to, if only its name was known."""
        partition = self._current(ticket)
        if partition is not None:
            partition.topic_id = topic_id

    def found(self, ticket: Ticket, offset: int) -> None:
        """Start at the offset that was found for a reset."""
        partition = self._current(ticket)
        if partition is not None:
            partition.start_at(offset)

    def fetched(self, asked: FetchPosition, chunks: Iterable[Chunk[B]], next_offset: int) -> None:
        """Take what was fetched, and read on at ``next_offset``."""
        partition = self._current(asked.ticket)
        if partition is None or partition.fetch_offset != asked.offset:
            return
        for chunk in chunks:
            partition.append(chunk)
            partition.is_busy = True
        if next_offset > partition.fetch_offset:
            partition.append(Chunk(batch=None, size_bytes=0, next_offset=next_offset))

    def quiet(self, tickets: Iterable[Ticket]) -> None:
        """Note that a fetch found nothing in any of its partitions."""
        for ticket in tickets:
            partition = self._current(ticket)
            if partition is not None:
                partition.is_busy = False

    def failed(self, ticket: Ticket, error: SemelError) -> None:
        """Stop asking for a partition until its user has heard of an error."""
        partition = self._current(ticket)
        if partition is not None:
            partition.fault = error

    # -- what the user gets ----------------------------------------------------------------------

    def take(self, max_records: int) -> list[ColumnBatch]:
        """Return records that were fetched, and move the positions past them.

        The partitions take turns in being first; paused ones have none. Raises what is wrong with a
        partition, once, when nothing else is there to return; an offset out of range is put right
        as the policy says.
        """
        taken: list[ColumnBatch] = []
        room_bytes = self._prefetch_max_bytes
        for topic_partition in list(self._partitions):
            before = len(taken)
            while max_records > 0 and room_bytes > 0:
                part = self._take_from(topic_partition, max_records)
                if part is None:
                    break
                taken.append(part.records)
                max_records -= len(part.records)
                room_bytes -= part.size_bytes
            if len(taken) > before:
                self._taken_last = topic_partition
                self._partitions[topic_partition] = self._partitions.pop(topic_partition)
        if not taken:
            self._face_faults()
        return taken

    def take_record(self) -> ConsumerRecord | None:
        """Return the next record of the batch that was taken from last, if there is one left.

        It is the cheap way on after ``take(1)``: it opens nothing, and changes no turn.
        """
        partition = self._partitions.get(self._taken_last) if self._taken_last else None
        if partition is None or partition.opened is None or partition.paused:
            return None
        records = partition.opened.records
        record = records.record(partition.used)
        partition.used += 1
        if partition.used == len(records):
            partition.use_up()
        else:
            partition.position = record.offset + 1
        return record

    def _take_from(self, topic_partition: TopicPartition, limit: int) -> Opened | None:
        partition = self._partitions[topic_partition]
        opened = None if partition.paused else self._opened(topic_partition, partition)
        if opened is None:
            return None
        count = len(opened.records)
        start, partition.used = partition.used, min(partition.used + limit, count)
        taken = opened.slice(start, partition.used)
        if partition.used == count:
            partition.use_up()
        else:
            partition.position = taken.records.offsets[-1] + 1
        return taken

    def _opened(self, topic_partition: TopicPartition, partition: Partition[B]) -> Opened | None:
        """Return the records of the first chunk that has any from the position on."""
        while partition.opened is None and partition.chunks:
            batch = partition.chunks[0].batch
            assert batch is not None, "gaps are crossed when they come first"
            position = partition.position or 0
            try:
                whole = self._open_batch(topic_partition, batch)
            except SemelError as error:
                partition.restart(next(self._generations), PositionState.FETCHING)
                partition.start_at(position)
                partition.fault = error
                return None
            start = bisect_left(whole.records.offsets, position)
            if start == len(whole.records):
                partition.use_up()
            else:
                partition.opened, partition.used = whole, start
        return partition.opened

    def _face_faults(self) -> None:
        for topic_partition, partition in self._partitions.items():
            fault = partition.fault
            if fault is None or partition.chunks or partition.paused:
                continue
            if self._resets(fault):
                self.seek_to(topic_partition, self._policy)
                continue
            partition.fault = None
            raise fault

    def _resets(self, fault: SemelError) -> bool:
        out_of_range = isinstance(fault, OffsetOutOfRangeError)
        return out_of_range and self._policy is not OffsetReset.NONE

    def _current(self, ticket: Ticket) -> Partition[B] | None:
        partition = self._partitions.get(ticket.topic_partition)
        return partition if partition and partition.generation == ticket.generation else None
