"""Brings what a consumer holds in line with what its group says, and tells the user (KIP-848).

The order is the whole point. Partitions that go: the user is told, and ends its transaction, then
they are let go of, then that is said to the group. Partitions that come: they are held, that is
said, then the user is told. All of it happens while the user is inside ``poll``.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from aiosemel._cluster.retry import Deadline
from aiosemel._consumer.group.member import GroupMember
from aiosemel._consumer.group.membership import MemberState, TopicIdPartition
from aiosemel._consumer.positions import Positions
from aiosemel._consumer.running_callbacks import callback_of, in_callback_of
from aiosemel._shared.change_signal import Signal
from aiosemel.types.offsets import TopicPartition
from semel.common.v1.records_pb2 import RecordBatch

_UNSETTLED = frozenset(
    {MemberState.RECONCILING, MemberState.FENCED, MemberState.STALE, MemberState.FATAL}
)

RebalanceCallback = Callable[[frozenset[TopicPartition]], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """The callbacks of the user."""

    on_assigned: RebalanceCallback | None = None
    on_revoked: RebalanceCallback | None = None
    on_lost: RebalanceCallback | None = None


class Rebalance:
    """The rebalances of one member."""

    def __init__(
        self,
        member: GroupMember,
        positions: Positions[RecordBatch],
        before_giving_up: Callable[[Deadline | None], Awaitable[None]],
        look_for_positions: Callable[[], None],
    ) -> None:
        """Take the two that are to be brought in line.

        ``look_for_positions`` is told of partitions that came, before the user is.
        """
        self.callbacks = Callbacks()
        self._before_giving_up = before_giving_up
        self._look_for_positions = look_for_positions
        self._member = member
        self._membership = member.membership
        self._positions = positions
        self._untold: frozenset[TopicPartition] = frozenset()
        """Partitions that came, and of which the user has not been told to the end."""
        self._going: frozenset[TopicPartition] = frozenset()
        """Partitions that go, and of which the user is told at this moment."""
        self._told = Signal()

    @property
    def due(self) -> bool:
        """Whether there is anything to do."""
        return self._membership.state in _UNSETTLED or bool(self._untold)

    async def reconcile(self) -> None:
        """Do everything that there is to do by now.

        Raises the error that ended the membership for good, and the error of a callback; the
        rebalance itself has taken place even then. A cancelled callback is called again.
        """
        while True:
            membership = self._membership
            if membership.state is MemberState.FATAL and membership.error is not None:
                raise membership.error
            if membership.must_let_go:
                await self._lose()
            elif revoked := membership.to_revoke:
                await self._revoke(revoked)
            elif assigned := membership.to_assign:
                self._assign(assigned)
            elif self._untold:
                await self._tell_assigned()
            else:
                return

    async def give_up_all(self, deadline: Deadline | None) -> None:
        """Give up every partition, before leaving the group; the deadline is not the user's.

        What a poll gives up at this moment is not told again: that is waited for.
        """
        try:
            while self._going and not in_callback_of(self):
                await self._told.wait()
            if untold := self._positions.held() - self._going:
                await self._tell_revoked(untold, deadline)
        finally:
            self._let_go(self._positions.held())

    async def _lose(self) -> None:
        lost = self._positions.held()
        try:
            if lost:
                with self._gone(lost):
                    await self._tell(self.callbacks.on_lost, lost)
        finally:
            self._let_go(lost)
        if self._membership.must_let_go:  # Else the callback has closed the consumer.
            self._membership.let_go()
        self._member.look()

    async def _revoke(self, partitions: frozenset[TopicIdPartition]) -> None:
        names = _names(partitions)
        try:
            await self._tell_revoked(names)
        except Exception:
            self._revoked(partitions)
            raise
        self._revoked(partitions)

    async def _tell_revoked(
        self, partitions: frozenset[TopicPartition], deadline: Deadline | None = None
    ) -> None:
        with self._gone(partitions):
            await self._before_giving_up(deadline)
            await self._tell(self.callbacks.on_revoked, partitions)

    @contextmanager
    def _gone(self, partitions: frozenset[TopicPartition]) -> Iterator[None]:
        """Note that the user is told that partitions go."""
        before, self._going = self._going, self._going | partitions
        try:
            yield
        finally:
            self._going = before
            self._told.notify()

    def _revoked(self, partitions: frozenset[TopicIdPartition]) -> None:
        self._let_go(_names(partitions))
        self._membership.revoked(partitions)
        self._member.look()

    def _assign(self, partitions: frozenset[TopicIdPartition]) -> None:
        for topic_id, topic, partition in sorted(partitions):
            self._positions.assign(TopicPartition(topic, partition), topic_id)
        self._look_for_positions()
        self._membership.assigned(partitions)
        self._member.look()
        self._untold |= _names(partitions)

    async def _tell_assigned(self) -> None:
        came = self._untold
        try:
            await self._tell(self.callbacks.on_assigned, came)
        except Exception:
            self._untold -= came
            raise
        self._untold -= came

    async def _tell(
        self, callback: RebalanceCallback | None, partitions: frozenset[TopicPartition]
    ) -> None:
        if callback is not None:
            with callback_of(self):
                await callback(partitions)

    def _let_go(self, partitions: frozenset[TopicPartition]) -> None:
        for partition in partitions:
            self._positions.unassign(partition)
        self._untold -= frozenset(partitions)


def _names(partitions: Iterable[TopicIdPartition]) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(partition.topic, partition.partition) for partition in partitions
    )
