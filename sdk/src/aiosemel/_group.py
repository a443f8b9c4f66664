"""A consumer's group: membership, rebalances and committed offsets, put together."""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping

from aiosemel._context import Context
from aiosemel._group_member import GroupMember
from aiosemel._group_offsets import GroupOffsets, check_group_id
from aiosemel._positions import Positions
from aiosemel._rebalance import Callbacks, Rebalance
from aiosemel._retry import Deadline
from aiosemel._signal import Signal
from aiosemel.consumer_options import ConsumerOptions, IsolationLevel
from aiosemel.errors import SemelError, StaleMemberEpochError
from aiosemel.offsets import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from semel.common.v1.records_pb2 import RecordBatch

_log = logging.getLogger(__name__)


class Group:
    """The group of one consumer."""

    def __init__(
        self,
        context: Context,
        group_id: str,
        options: ConsumerOptions,
        positions: Positions[RecordBatch],
        arrived: Signal,
    ) -> None:
        """Be no member yet. ``arrived`` is told when there may be something to reconcile.

        Raises InvalidGroupIdError.
        """
        check_group_id(group_id)
        self._cluster = context.cluster
        self._group_id = group_id
        self._options = options
        self._positions = positions
        member_id = f"{context.random.getrandbits(128):032x}"
        self._member = GroupMember(context.cluster, group_id, member_id, options, arrived)
        self._rebalance = Rebalance(self._member, positions, self._commit_before_giving_up)
        self.offsets = GroupOffsets(
            context.cluster,
            self.metadata,
            require_stable=options.isolation_level == IsolationLevel.READ_COMMITTED,
        )
        self.subscribed = False
        """Whether this consumer is a member, or wants to be."""
        self._auto_commit_at: float | None = None

    def metadata(self) -> ConsumerGroupMetadata:
        """Return who commits offsets."""
        if not self.subscribed:
            return ConsumerGroupMetadata(group_id=self._group_id)
        return self._member.group_metadata()

    # -- membership ------------------------------------------------------------------------------

    def subscribe(self, topics: Collection[str], callbacks: Callbacks) -> None:
        """Want to be a member that reads these topics."""
        if not self.subscribed:
            self._member.polling()  # who has not polled yet is not overdue
        self.subscribed = True
        self._rebalance.callbacks = callbacks
        self._member.membership.subscribe(topics)
        self._member.look()

    async def unsubscribe(self) -> None:
        """Give up every partition, and leave the group; nobody waits for the answer to that."""
        try:
            await self.give_up_all()
        finally:
            self.subscribed = False
            self._member.membership.leave()
            self._member.look()

    @property
    def topics(self) -> frozenset[str]:
        """What this consumer is subscribed to."""
        return self._member.membership.topics

    async def run(self) -> None:
        """Send heartbeats until cancelled."""
        await self._member.run()

    def polling(self) -> None:
        """Note that the user is in ``poll``."""
        self._member.polling()

    def polled(self) -> None:
        """Note that the user has left ``poll``."""
        self._member.polled()

    @property
    def reconcile_due(self) -> bool:
        """Whether ``reconcile`` has anything to do."""
        return self._rebalance.due

    async def reconcile(self) -> None:
        """Give up and take what is due; see ``Rebalance.reconcile``."""
        if self._rebalance.due:
            await self._rebalance.reconcile()

    async def give_up_all(self) -> None:
        """Give up every partition, before ``leave``."""
        if self.subscribed:
            await self._rebalance.give_up_all()

    async def leave(self, deadline: Deadline) -> None:
        """Leave the group, after ``run``."""
        await self._member.leave(deadline)

    # -- offsets ---------------------------------------------------------------------------------

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline: Deadline
    ) -> None:
        """Commit offsets; once more, if the member had not heard of its newest epoch yet."""
        if not offsets:
            return
        try:
            await self.offsets.commit(offsets, self._positions.topic_ids(), deadline)
        except StaleMemberEpochError:
            if not await self._member.ask_again(deadline):
                raise
            await self.offsets.commit(offsets, self._positions.topic_ids(), deadline)

    async def committed(
        self, partitions: Iterable[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what is committed; waits for transactions that may still change it."""
        topic_ids = self._positions.topic_ids()
        wanted = [(each, topic_ids.get(each, "")) for each in partitions]
        return await self.offsets.settled(wanted, deadline)

    async def auto_commit(self) -> None:
        """Commit what earlier polls returned, if that is wanted and it is time."""
        if not self._options.enable_auto_commit:
            return
        now = asyncio.get_running_loop().time()
        if self._auto_commit_at is None or now >= self._auto_commit_at:
            is_first = self._auto_commit_at is None
            self._auto_commit_at = now + self._options.auto_commit_interval_ms / 1000
            if not is_first:
                await self._commit_positions()

    async def _commit_before_giving_up(self) -> None:
        if self._options.enable_auto_commit:
            await self._commit_positions()

    async def _commit_positions(self) -> None:
        offsets = {k: OffsetAndMetadata(v) for k, v in self._positions.positions().items()}
        deadline = Deadline.after_ms(self._cluster.options.default_api_timeout_ms)
        try:
            await self.commit(offsets, deadline)
        except SemelError as error:
            _log.warning("offsets of group %s are not committed: %s", self._group_id, error)
