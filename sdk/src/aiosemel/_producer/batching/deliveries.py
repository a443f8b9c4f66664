"""The results of ``send``: awaitables that cost next to nothing until the caller awaits them.

A delivery points to its batch. Only who awaits one before the batch is done makes a future.
"""

import asyncio
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiosemel._producer.batching.batch import Batch
from aiosemel.errors import IllegalStateError, SemelError


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordMetadata:
    """Where a record is stored."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    """Milliseconds since 1970-01-01 UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsMetadata:
    """Where consecutive records of one ``send_columns`` are stored."""

    topic: str
    partition: int
    base_offset: int
    record_count: int


class Completions:
    """The callers that wait for each batch."""

    def __init__(self) -> None:
        self._waiters: dict[Batch, list[asyncio.Future[None]]] = {}

    async def wait(self, batch: Batch) -> None:
        """Wait until a batch is done."""
        if batch.is_done:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(batch, []).append(waiter)
        await waiter

    def done(self, batch: Batch) -> bool:
        """Wake the callers that wait for a batch; returns whether there were any."""
        waiters = self._waiters.pop(batch, ())
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        return bool(waiters)


class Delivery:
    """A record on its way. Await it for its RecordMetadata, or for the error that ended it.

    No caller needs to: ``flush`` waits for all, and ``commit`` fails if one has failed.
    """

    # The pipeline makes one for each record, and most callers drop it: a call of ``__init__`` would
    # cost as much as the rest of its making. So the pipeline sets these; nothing else uses them.
    __slots__ = ("batch", "completions", "position", "topic")
    if TYPE_CHECKING:  # They are no part of the public class, so they are no hints of it.
        topic: str
        batch: Batch
        position: int
        completions: Completions

    def done(self) -> bool:
        """Return whether the record is acknowledged, or given up."""
        self._follow()
        return self.batch.is_done

    def result(self) -> RecordMetadata:
        """Return where the record is; raises its error, IllegalStateError while it is not done."""
        self._follow()
        batch = self.batch
        _check_done(batch)
        return RecordMetadata(
            topic=self.topic,
            partition=batch.topic_partition.partition,
            offset=batch.base_offset + self.position,
            timestamp_ms=batch.timestamps_ms[self.position],
        )

    def __await__(self) -> Generator[object, None, RecordMetadata]:
        while not self.done():
            yield from self.completions.wait(self.batch).__await__()
        return self.result()

    def _follow(self) -> None:
        """Go on to the part that has the record, if its batch was cut."""
        while self.batch.parts:
            for part in self.batch.parts:
                if self.position < part.record_count:
                    self.batch = part
                    break
                self.position -= part.record_count


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive records of one ``send_columns`` in one batch."""

    batch: Batch
    position: int
    record_count: int

    def awaited(self) -> Batch | None:
        """Return a batch that is not done, and has some of its records."""
        return next((part.batch for part in self.parts() if not part.batch.is_done), None)

    def parts(self) -> "Iterator[Piece]":
        """Yield where its records are now: in the parts of its batch, if that was cut."""
        if not self.batch.parts:
            yield self
            return
        position, left = self.position, self.record_count
        for part in self.batch.parts:
            count = min(left, part.record_count - position)
            if count > 0:
                yield from Piece(part, position, count).parts()
                left -= count
            position = max(0, position - part.record_count)


class ColumnsDelivery:
    """Many records on their way. Await it for where each piece of them is, in the order sent.

    Raises the error of the first piece that was given up.
    """

    __slots__ = ("_completions", "_pieces", "_topic")

    def __init__(self, topic: str, pieces: list[Piece], completions: Completions) -> None:
        self._topic = topic
        self._pieces = pieces
        self._completions = completions

    def done(self) -> bool:
        """Return whether all records are acknowledged, or given up."""
        return all(piece.batch.is_done for piece in self._parts())

    def result(self) -> tuple[ColumnsMetadata, ...]:
        """Return where the pieces are; raises as ``Delivery.result``."""
        return tuple(self._metadata(piece) for piece in self._parts())

    def _parts(self) -> Iterator[Piece]:
        return (part for piece in self._pieces for part in piece.parts())

    def _metadata(self, piece: Piece) -> ColumnsMetadata:
        _check_done(piece.batch)
        return ColumnsMetadata(
            topic=self._topic,
            partition=piece.batch.topic_partition.partition,
            base_offset=piece.batch.base_offset + piece.position,
            record_count=piece.record_count,
        )

    def __await__(self) -> Generator[object, None, tuple[ColumnsMetadata, ...]]:
        for piece in self._pieces:
            while (batch := piece.awaited()) is not None:
                yield from self._completions.wait(batch).__await__()
        return self.result()


def _check_done(batch: Batch) -> None:
    if not batch.is_done:
        raise IllegalStateError("the records are still on their way: await the delivery")
    if batch.error is not None:
        raise again(batch.error)


def again(error: SemelError) -> SemelError:
    """Return a copy of an error that is raised to several: each gets a traceback of its own."""
    copy = type(error)(error.message, **error.details)
    copy.__cause__ = error
    return copy
