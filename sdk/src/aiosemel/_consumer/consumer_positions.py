"""The part of a consumer that moves: positions, seeks and pauses."""

from collections.abc import Collection
from functools import partial

from aiosemel._consumer.consumer_part import ConsumerPart
from aiosemel._consumer.partition_state import OffsetReset
from aiosemel._shared.value_checks import check_number
from aiosemel.types.offsets import TopicPartition


class ConsumerPositions(ConsumerPart):
    """Where a consumer reads on."""

    def seek(self, partition: tuple[str, int], offset: int) -> None:
        """Read on at an offset. Raises IllegalStateError for a partition that is not held."""
        check_number("offset", offset)
        self._positions.seek(self._held(partition), offset)
        self._fetcher.look()

    def seek_to_beginning(self, *partitions: tuple[str, int]) -> None:
        """Read on at the start of the logs: of all partitions, if none is named."""
        self._seek_to(partitions, OffsetReset.EARLIEST)

    def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        """Read on at the end of the logs: of all partitions, if none is named.

        The end is the last stable offset with READ_COMMITTED.
        """
        self._seek_to(partitions, OffsetReset.LATEST)

    def seek_to_committed(self, *partitions: tuple[str, int]) -> None:
        """Read on where the group's committed offsets say, or else ``auto_offset_reset``."""
        for topic_partition in self._named(partitions):
            self._positions.seek_to_committed(topic_partition)
        self._fetcher.look()

    def _seek_to(self, partitions: Collection[tuple[str, int]], reset: OffsetReset) -> None:
        for topic_partition in self._named(partitions):
            self._positions.seek_to(topic_partition, reset)
        self._fetcher.look()

    def pause(self, *partitions: tuple[str, int]) -> None:
        """Return no records of these partitions, of all if none is named, until ``resume``.

        They stay with this consumer for as long as it polls, with their positions; what one gives
        up and gets again is not paused. Raises IllegalStateError for one that is not held.
        """
        for topic_partition in self._named(partitions):
            self._positions.pause(topic_partition)

    def resume(self, *partitions: tuple[str, int]) -> None:
        """Go on with paused partitions: with all, if none is named. Raises as ``pause``."""
        for topic_partition in self._named(partitions):
            self._positions.resume(topic_partition)
        self._fetcher.look()
        self._arrived.notify()

    def paused(self) -> frozenset[TopicPartition]:
        """Return the partitions that are paused."""
        return self._positions.paused()

    async def position(self, partition: tuple[str, int], timeout_ms: int | None = None) -> int:
        """Return the offset of the next record that the user gets; waits until it is known.

        Raises IllegalStateError for a partition that is not held, RequestTimedOutError from what
        went wrong last, and as ``poll`` what is wrong with the partition; for a position that was
        not found before the group took the partition away (``on_lost``), what ``committed`` raises.
        """
        held = partial(self._supplied, partition)
        return await self._polling.position(held, self._deadline(timeout_ms))

    def positions(self) -> dict[TopicPartition, int]:
        """Return the positions that are known now."""
        return self._positions.positions()

    def topic_ids(self) -> dict[TopicPartition, str]:
        """Return the id of the topic of each partition that is held; empty: not known yet."""
        return self._positions.topic_ids()
