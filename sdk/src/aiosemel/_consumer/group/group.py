"""A consumer's group: membership, rebalances and committed offsets, put together."""

from collections.abc import Callable, Collection, Iterable, Mapping

from aiosemel._cluster.retry import Deadline
from aiosemel._consumer.group.auto_commit import AutoCommit
from aiosemel._consumer.group.committed_offsets import GroupOffsets, to_commit
from aiosemel._consumer.group.member import GroupMember
from aiosemel._consumer.group.rebalance import Callbacks, Rebalance
from aiosemel._consumer.positions import Positions
from aiosemel._shared.change_signal import Signal
from aiosemel._shared.context import Context
from aiosemel._shared.value_checks import check_group_id
from aiosemel.errors import StaleMemberEpochError
from aiosemel.options.consumer_options import ConsumerOptions, IsolationLevel
from aiosemel.types.offsets import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from semel.common.v1.records_pb2 import RecordBatch


class Group:
    """The group of one consumer."""

    def __init__(
        self,
        context: Context,
        group_id: str,
        options: ConsumerOptions,
        positions: Positions[RecordBatch],
        arrived: Signal,
        look_for_positions: Callable[[], None],
    ) -> None:
        """Be no member yet. ``arrived`` is told when there may be something to reconcile.

        ``look_for_positions`` is told of partitions that came. Raises InvalidGroupIdError.
        """
        check_group_id(group_id)
        self._cluster = context.cluster
        self._group_id = group_id
        self._positions = positions
        self.member = GroupMember(context.cluster, group_id, context.new_name(), options, arrived)
        """What sends heartbeats."""
        self._auto_commit = AutoCommit(
            context.spawn,
            options.auto_commit_interval_ms if options.enable_auto_commit else None,
            context.cluster.options.default_api_timeout_ms,
            self._reached,
            self._commit,
        )
        self._rebalance = Rebalance(
            self.member, positions, self._auto_commit.last, look_for_positions
        )
        self.offsets = GroupOffsets(
            context.cluster,
            self.metadata,
            require_stable=options.isolation_level == IsolationLevel.READ_COMMITTED,
        )
        self.subscribed = False
        """Whether this consumer is a member, or wants to be."""

    def metadata(self) -> ConsumerGroupMetadata:
        """Return who commits offsets."""
        if not self.subscribed:
            return ConsumerGroupMetadata(group_id=self._group_id)
        return self.member.group_metadata()

    # -- membership ------------------------------------------------------------------------------

    def subscribe(self, topics: Collection[str], callbacks: Callbacks) -> None:
        """Want to be a member that reads these topics."""
        if not self.subscribed:
            self.member.polling()  # a consumer that has not polled yet is not overdue
        self.subscribed = True
        self._rebalance.callbacks = callbacks
        self.member.membership.subscribe(topics)
        self.member.look()

    async def unsubscribe(self) -> None:
        """Give up every partition, and leave the group, without a wait for the answer."""
        try:
            await self.give_up_all()
        finally:
            self.subscribed = False
            self.member.membership.leave()
            self.member.look()

    @property
    def reconcile_due(self) -> bool:
        """Whether ``reconcile`` has anything to do."""
        return self._rebalance.due

    async def reconcile(self) -> None:
        """Give up and take what is due; see ``Rebalance.reconcile``."""
        if self._rebalance.due:
            await self._rebalance.reconcile()

    async def give_up_all(self, deadline: Deadline | None = None) -> None:
        """Give up every partition, before ``leave``; the deadline is for a commit of its own."""
        try:
            if self.subscribed:
                await self._rebalance.give_up_all(deadline)
            else:
                await self._auto_commit.last(deadline)
        finally:
            await self._auto_commit.stop()

    # -- offsets ---------------------------------------------------------------------------------

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline: Deadline
    ) -> None:
        """Commit offsets; once more, if the member had not heard of its newest epoch yet."""
        await self._auto_commit.stop()
        await self._commit(offsets, deadline)

    async def committed(
        self, partitions: Iterable[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what is committed; waits for transactions that may still change it."""
        topic_ids = self._positions.topic_ids()
        wanted = [(partition, topic_ids.get(partition, "")) for partition in partitions]
        return await self.offsets.settled(wanted, deadline)

    def auto_commit(self) -> None:
        """Begin to commit what earlier polls returned, if that is wanted and it is time."""
        self._auto_commit.poll()

    async def _commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline: Deadline
    ) -> None:
        if not offsets:
            return
        try:
            await self.offsets.commit(offsets, self._positions.topic_ids(), deadline)
        except StaleMemberEpochError:
            if not await self.member.ask_again(deadline):
                raise
            await self.offsets.commit(offsets, self._positions.topic_ids(), deadline)

    def _reached(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return to_commit(self._positions.positions())
