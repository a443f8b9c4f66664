"""The partitions that requests hold: while one holds a partition, no other asks for it."""

from collections.abc import Iterable
from typing import TypeAlias

from aiosemel._consumer.positions import FetchPosition, PositionQuestion, Positions, Ticket
from aiosemel._shared.change_signal import Signal
from aiosemel.errors import SemelError
from semel.common.v1.records_pb2 import RecordBatch

Asked: TypeAlias = PositionQuestion | FetchPosition
"""A partition that a request asks about."""
Held: TypeAlias = set[Ticket]
"""The partitions that a request has not released."""


class HeldPartitions:
    """Which partitions of one consumer requests hold."""

    def __init__(self, positions: Positions[RecordBatch], arrived: Signal, work: Signal) -> None:
        """Hold nothing. A release tells ``arrived`` and ``work`` that there may be something."""
        self._positions = positions
        self._arrived = arrived
        self._work = work

    def hold(self, asked: Iterable[Asked]) -> Held:
        """Hold partitions, so that no other request asks for them, until ``release``."""
        held = {item.ticket for item in asked}
        self._positions.asked(held)
        return held

    def release(self, held: Held, tickets: Iterable[Ticket]) -> None:
        """Release some partitions of a request: they do not come back to the request."""
        released = held.intersection(tickets)
        held -= released
        self._positions.given_up(released)
        self._work.notify()
        self._arrived.notify()

    def fail(self, asked: Iterable[Asked], error: SemelError) -> None:
        """Let the next poll raise an error for each of these partitions."""
        for item in asked:
            self._positions.failed(item.ticket, error)
