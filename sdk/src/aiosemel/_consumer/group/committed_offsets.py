"""The committed offsets of a group, as one consumer asks for them and commits them."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import chain, repeat

from aiosemel._cluster.pages import pages
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel.errors import (
    InvalidRequestError,
    RetriableError,
    SemelError,
    UnknownTopicOrPartitionError,
)
from aiosemel.types.offsets import (
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    PartitionKey,
    TopicPartition,
    by_partition,
)
from semel.coordinator.v1.outcomes_pb2 import Operator
from semel.group.v1 import group_pb2 as group
from semel_common.wire import status
from semel_common.wire.messages.request_bounds import OFFSETS_MAX
from semel_common.wire.methods import COMMIT_OFFSETS, FETCH_OFFSETS

QUICK_PAUSES_MS = (10.0, 20.0, 50.0)
"""Pauses while an open transaction may change an offset; the last one again and again."""

UNKNOWN_TOPIC_PATIENCE_MS = 5_000
"""How long a group coordinator may take to hear of a topic that was just made."""

Committed = OffsetAndMetadata | SemelError | None


def to_commit(
    offsets: Mapping[PartitionKey, int | OffsetAndMetadata],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return what a caller wants to commit: of the next records to read, by partition.

    Raises TypeError, InvalidRequestError or InvalidTopicError for what no request can carry.
    """
    wanted = by_partition("offsets", offsets)
    if len(wanted) > OFFSETS_MAX:
        raise InvalidRequestError(
            f"{len(wanted):,} offsets are in one commit: give {OFFSETS_MAX:,} at most"
        )
    return {each: OffsetAndMetadata.given(at) for each, at in wanted.items()}


class GroupOffsets:
    """The committed offsets of one group."""

    def __init__(
        self, cluster: Cluster, who: Callable[[], ConsumerGroupMetadata], *, require_stable: bool
    ) -> None:
        """``who`` says on whose behalf: at what epoch the member is now."""
        self._cluster = cluster
        self._who = who
        self._require_stable = require_stable

    async def fetch(
        self, partitions: Sequence[tuple[TopicPartition, str]] | None, deadline: Deadline
    ) -> dict[TopicPartition, Committed]:
        """Return what is committed for partitions, which come with the ids of their topics.

        None: for all that there are.

        For each: the offset; None when there is none; or an error, UnstableOffsetCommitError above
        all: an open transaction may still change it. Raises as ``Cluster.call``.
        """
        who = self._who()
        topics: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for (topic, partition), topic_id in partitions or ():
            topics[topic, topic_id].append(partition)
        route = self._cluster.group_coordinator_of(who.group_id)

        def ask(token: str) -> Awaitable[group.FetchOffsetsResponse]:
            request = group.FetchOffsetsRequest(
                group_id=who.group_id,
                topics=[
                    group.OffsetFetchTopic(topic=topic, topic_id=topic_id, partitions=numbers)
                    for (topic, topic_id), numbers in topics.items()
                ],
                all_partitions=partitions is None,
                require_stable=self._require_stable,
                member_id=who.member_id,
                member_epoch=who.member_epoch,
                page_token=token,
            )
            return self._cluster.call(route, FETCH_OFFSETS, request, deadline=deadline)

        answers: dict[TopicPartition, Committed] = {each: None for each, _ in partitions or ()}
        async for page in pages(ask):
            for offset in page.offsets:
                answers[TopicPartition(offset.topic, offset.partition)] = _committed(offset)
        return answers

    async def settled(
        self, partitions: Sequence[tuple[TopicPartition, str]] | None, deadline: Deadline
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what is committed; waits for transactions that may still change it.

        None as ``partitions``: wherever anything is. Raises as ``fetch``, and the error of a
        partition: what is retriable only at the deadline, and UnknownTopicOrPartitionError after
        ``UNKNOWN_TOPIC_PATIENCE_MS``.
        """
        pauses_ms = quick_pauses_ms()
        patience = min(deadline, Deadline.after_ms(UNKNOWN_TOPIC_PATIENCE_MS), key=lambda d: d.at)
        while True:
            answers = await self.fetch(partitions, deadline)
            found = {k: v for k, v in answers.items() if not isinstance(v, SemelError)}
            if len(found) == len(answers):
                return found
            pause_ms = next(pauses_ms)
            for error in (answer for answer in answers.values() if isinstance(answer, SemelError)):
                is_unknown = isinstance(error, UnknownTopicOrPartitionError)
                left_ms = (patience if is_unknown else deadline).remaining_ms()
                if not isinstance(error, RetriableError) or left_ms <= pause_ms:
                    raise error
            await asyncio.sleep(pause_ms / 1000)

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        topic_ids: Mapping[TopicPartition, str],
        deadline: Deadline,
        *,
        operator: Operator | None = None,
    ) -> None:
        """Commit offsets; of a partition whose topic id is not known, by the topic's name.

        Raises as ``Cluster.call``, and the error of the first partition that was refused: all that
        were not refused are committed then.
        """
        who = self._who()
        topics: defaultdict[tuple[str, str], list[group.OffsetCommitPartition]] = defaultdict(list)
        for each, (offset, metadata) in offsets.items():
            topics[each.topic, topic_ids.get(each, "")].append(
                group.OffsetCommitPartition(
                    partition=each.partition, committed_offset=offset, metadata=metadata
                )
            )
        request = group.CommitOffsetsRequest(
            group_id=who.group_id,
            member_id=who.member_id,
            member_epoch=who.member_epoch,
            topics=[
                group.OffsetCommitTopic(topic=topic, topic_id=topic_id, partitions=partitions)
                for (topic, topic_id), partitions in topics.items()
            ],
            operator=operator,
        )
        route = self._cluster.group_coordinator_of(who.group_id)
        response = await self._cluster.call(route, COMMIT_OFFSETS, request, deadline=deadline)
        for refused in response.errors:
            raise status.from_value(refused.error)


def quick_pauses_ms() -> Iterator[float]:
    """Yield pauses for states that settle within milliseconds."""
    return chain(QUICK_PAUSES_MS, repeat(QUICK_PAUSES_MS[-1]))


def _committed(fetched: group.FetchedOffset) -> Committed:
    if fetched.HasField("error"):
        return status.from_value(fetched.error)
    if fetched.committed_offset < 0:
        return None
    return OffsetAndMetadata(fetched.committed_offset, fetched.metadata)
