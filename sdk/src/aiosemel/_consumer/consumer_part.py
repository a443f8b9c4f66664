"""The common parts of a consumer: its machines, its background work, and its life."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Collection
from functools import partial

from aiosemel._cluster.log_offsets import LogOffsets
from aiosemel._cluster.retry import Deadline
from aiosemel._consumer.fetched_batch import open_batch
from aiosemel._consumer.fetching.fetcher import Fetcher
from aiosemel._consumer.group.group import Group
from aiosemel._consumer.partition_state import OffsetReset
from aiosemel._consumer.polling import Polling
from aiosemel._consumer.positions import Positions
from aiosemel._shared.background_task import Background
from aiosemel._shared.change_signal import Signal
from aiosemel._shared.closing import Closing
from aiosemel._shared.context import Context
from aiosemel.errors import ClosedError, IllegalStateError, InvalidGroupIdError
from aiosemel.options.consumer_options import ConsumerOptions
from aiosemel.types.offsets import TopicPartition


class ConsumerPart(ABC):
    """One part of a consumer."""

    def __init__(
        self, context: Context, group_id: str | None = None, options: ConsumerOptions | None = None
    ) -> None:
        """Do no I/O yet. Without a group id, nothing can be subscribed to or committed."""
        self._context = context
        self._options = options or ConsumerOptions()
        self._group_id = group_id
        self._arrived = Signal()
        self._positions = Positions(
            open_batch(self._options),
            policy=OffsetReset(self._options.auto_offset_reset),
            prefetch_max_bytes=self._options.prefetch_max_bytes,
            partition_max_bytes=self._options.max_partition_fetch_bytes,
        )
        self._group: Group | None = None
        self._fetcher: Fetcher
        if group_id is not None:
            look = lambda: self._fetcher.look()  # noqa: E731, PLW0108 - it is made below
            self._group = Group(
                context, group_id, self._options, self._positions, self._arrived, look
            )
        offsets = None if self._group is None else self._group.offsets
        self._fetcher = Fetcher(
            context.cluster, self._positions, offsets, self._options, self._arrived
        )
        self._log_offsets = LogOffsets(context.cluster, self._options.isolation_level)
        self._background = Background(self._work, self._arrived.notify)
        self._polling = Polling(
            self._positions,
            self._fetcher,
            self._arrived,
            group=self._group,
            group_id=group_id,
            check=self._check,
            tracer=context.tracer,
        )
        self._closed = False
        self._closing = Closing(partial(context.forget, self))

    @abstractmethod
    async def close(self) -> None:
        """Give up all partitions, leave the group, and stop."""

    # -- life -------------------------------------------------------------------------------------

    def _check_usable(self) -> None:
        self._context.cluster.home.check()
        if not self._background.running:  # Else ``on_revoked`` may be told of a close just now.
            self._check_open()

    def _start(self) -> None:
        self._check_usable()
        if not self._background.running:
            self._background.start(self._context.spawn, f"consumer {self._group_id or ''}".strip())

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._fetcher.run(), name="consumer fetcher")
            if self._group is not None:
                group.create_task(self._group.member.run(), name="consumer heartbeats")

    def _needs_group(self) -> Group:
        if self._group is None:
            raise InvalidGroupIdError("the consumer has no group id")
        return self._group

    def _check(self) -> None:
        self._check_open()
        self._background.check()

    def _check_open(self) -> None:
        self._context.cluster.home.check()
        if self._closed:
            raise ClosedError("the consumer is closed")

    def _deadline(self, timeout_ms: int | None) -> Deadline:
        default_ms = self._context.cluster.options.default_api_timeout_ms
        return Deadline.after_ms(default_ms if timeout_ms is None else timeout_ms)

    def _named(self, partitions: Collection[tuple[str, int]]) -> list[TopicPartition]:
        return [self._held(each) for each in partitions or self._positions.held()]

    def _supplied(self, partition: tuple[str, int]) -> TopicPartition:
        self._start()
        self._background.check()
        return self._held(partition)

    def _held(self, partition: tuple[str, int]) -> TopicPartition:
        self._context.cluster.home.check()
        held = TopicPartition.named(partition)
        if held not in self._positions:
            raise IllegalStateError(f"{held} is not assigned to this consumer")
        return held
