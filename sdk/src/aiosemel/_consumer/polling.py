"""The polls of a consumer, one at a time: rebalances first, then records, or the wait for them."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opentelemetry.trace import Tracer

from aiosemel._cluster.last_error import not_in_time
from aiosemel._cluster.retry import Deadline
from aiosemel._consumer.consumer_spans import now_ns, polled
from aiosemel._consumer.fetching.fetcher import Fetcher
from aiosemel._consumer.group.group import Group
from aiosemel._consumer.positions import Positions
from aiosemel._consumer.running_callbacks import in_callback
from aiosemel._shared.change_signal import Signal
from aiosemel.errors import IllegalStateError, InvalidRequestError
from aiosemel.types.consumer_records import ColumnBatch, ConsumerRecord
from aiosemel.types.offsets import TopicPartition
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
            self._group.member.polled()
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
                    self._check()  # A callback of the rebalance may have closed the consumer.
                try:
                    taken = self._positions.take(max_records)
                finally:
                    self._fetcher.look()
                if not taken and self._group is not None:
                    self._group.member.check_reachable()
                if self._woken and not taken:
                    self._woken = False
                    return taken
                if taken or not await self._arrived.wait(deadline.remaining_ms()):
                    if taken and self._tracer is not None:
                        polled(self._tracer, self._group_id, taken, began_ns)
                    return taken
                await self._fetcher.ask_ahead()

    async def position(self, held: Callable[[], TopicPartition], deadline: Deadline) -> int:
        """Return the position in a partition once it is known.

        ``held`` returns the partition, and raises when there is nothing to wait for any more.
        """
        while True:
            partition = held()
            self._positions.check(partition)
            known = self._positions.position(partition)
            if known is not None:
                return known
            if self._group is not None:
                self._group.member.check_not_lost()
            if not await self._arrived.wait(deadline.remaining_ms()):
                raise not_in_time(f"the position in {partition}", self._fetcher.trouble(partition))

    def wakeup(self) -> None:
        """Let the ``take`` that waits now, or else the next one that would, return nothing."""
        self._woken = True
        self._arrived.notify()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other task poll meanwhile; raises IllegalStateError if one does already."""
        if self._under_way and in_callback():
            raise IllegalStateError(
                "a callback of a rebalance runs inside of a poll: it cannot poll, iterate or "
                "unsubscribe; do so after the poll"
            )
        if self._under_way:
            raise IllegalStateError("the consumer is being polled by another task")
        self._under_way = True
        if self._group is not None:
            self._group.member.polling()
        try:
            yield
        finally:
            self._under_way = False
            if self._group is not None:
                self._group.member.polled()
