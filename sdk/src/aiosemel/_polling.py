"""The polls of a consumer, one at a time: rebalances first, then records, or the wait for them."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opentelemetry.trace import Tracer

from aiosemel._consumer_spans import now_ns, polled
from aiosemel._fetcher import Fetcher
from aiosemel._group import Group
from aiosemel._positions import Positions
from aiosemel._retry import Deadline
from aiosemel._signal import Signal
from aiosemel.consumer_records import ColumnBatch, ConsumerRecord
from aiosemel.errors import IllegalStateError, InvalidRequestError
from semel.common.v1.records_pb2 import RecordBatch


class Polling:
    """How one consumer comes by its records."""

    def __init__(
        self,
        positions: Positions[RecordBatch],
        fetcher: Fetcher,
        arrived: Signal,
        *,
        group: Group | None,
        group_id: str | None,
        check: Callable[[], None],
        tracer: Tracer | None,
    ) -> None:
        """``check`` raises when there is nothing to poll any more."""
        self._positions = positions
        self._fetcher = fetcher
        self._arrived = arrived
        self._group = group
        self._group_id = group_id
        self._check = check
        self._tracer = tracer
        self._under_way = False
        self._woken = False

    def take_at_once(self) -> ConsumerRecord | None:
        """Return the next record of a batch that was begun, unless ``take`` has more to do."""
        if self._under_way:
            return None
        if self._group is not None:
            if self._group.reconcile_due:
                return None
            self._group.polled()
        return self._positions.take_record()

    async def take(self, max_records: int, timeout_ms: int) -> list[ColumnBatch]:
        """Return the next records as soon as there are any; none after ``timeout_ms``."""
        if max_records < 1:
            raise InvalidRequestError(f"max_records is {max_records}, less than 1")
        with self.alone():
            deadline = Deadline.after_ms(timeout_ms)
            began_ns = 0 if self._tracer is None else now_ns()
            await asyncio.sleep(0)  # a user who always finds records must not starve everybody else
            if self._group is not None:
                self._group.auto_commit()
            while True:
                self._check()
                if self._group is not None:
                    await self._group.reconcile()
                try:
                    taken = self._positions.take(max_records)
                finally:
                    self._fetcher.look()
                if self._woken and not taken:
                    self._woken = False
                    return taken
                if taken or not await self._arrived.wait(deadline.remaining_ms()):
                    if taken and self._tracer is not None:
                        polled(self._tracer, self._group_id, taken, began_ns)
                    return taken
                await self._fetcher.ask_ahead()

    def wakeup(self) -> None:
        """Let the ``take`` that waits now, or else the next one that would, return nothing."""
        self._woken = True
        self._arrived.notify()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other task poll meanwhile; raises IllegalStateError if one does already."""
        if self._under_way:
            raise IllegalStateError("the consumer is being polled by another task")
        self._under_way = True
        if self._group is not None:
            self._group.polling()
        try:
            yield
        finally:
            self._under_way = False
            if self._group is not None:
                self._group.polled()
