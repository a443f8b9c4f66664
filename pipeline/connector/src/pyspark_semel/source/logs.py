"""What a source sees of the cluster: its topics, and the offsets at which their logs begin and end.

Each call looks everything up again, so that the next micro-batch notices added partitions, and
topics that were deleted or made again.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from aiosemel import (
    OffsetAndTimestamp,
    OffsetSpec,
    SemelClient,
    TopicPartition,
    TopicsDescription,
)
from pyspark_semel.errors import OptionError, UnknownTopicError
from pyspark_semel.source.bounds import AtOffsets, AtTimestamp, AtTimestamps, Bound
from pyspark_semel.source.offsets import EARLIEST, LATEST, Positions
from pyspark_semel.source.options import SourceOptions
from pyspark_semel.source.subscriptions import SUBSCRIPTIONS, Partitions, Pattern, Topics


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The partitions that are subscribed to and there, at one moment."""

    cluster_id: str
    topic_ids: Mapping[str, str]
    """By name."""
    partitions: tuple[TopicPartition, ...]
    """Sorted."""
    missing: tuple[str, ...]
    """Topics and partitions that the options name, and that are not there."""


class Logs:
    """The logs that the options of one source name."""

    def __init__(self, client: SemelClient, options: SourceOptions) -> None:
        self._admin = client.admin()
        self._options = options

    async def look(self) -> Seen:
        """Return the present partitions."""
        return _seen(await self._describe(), self._options)

    async def look_for_all(self) -> Seen:
        """Return the present partitions; raises UnknownTopicError unless all named ones exist."""
        seen = await self.look()
        if seen.missing:
            self.refuse(seen.missing)
        return seen

    def refuse(self, missing: Iterable[str]) -> NoReturn:
        """Raise UnknownTopicError."""
        raise UnknownTopicError(
            f"not there in the cluster at {self._options.bootstrap}: {', '.join(missing)}; "
            "create it, or see whether its name is right"
        )

    async def _describe(self) -> TopicsDescription:
        match self._options.subscription:
            case Topics(names):
                return await self._admin.describe_topics(names)
            case Partitions(partitions):
                return await self._admin.describe_topics(
                    {partition.topic for partition in partitions}
                )
            case Pattern(pattern):
                listed = await self._admin.list_topics()
                matching = [entry.name for entry in listed if pattern.fullmatch(entry.name)]
                return await self._admin.describe_topics(matching)

    async def starts(self, partitions: Iterable[TopicPartition]) -> Positions:
        """Return where logs begin."""
        return await self._at(dict.fromkeys(partitions, OffsetSpec.EARLIEST))

    async def ends(self, partitions: Iterable[TopicPartition]) -> Positions:
        """Return where logs end for this reader: read_committed, at the last stable offset."""
        return await self._at(dict.fromkeys(partitions, OffsetSpec.LATEST))

    async def durable_ends(self, partitions: Iterable[TopicPartition]) -> Positions:
        """Return the ends of logs, open transactions included."""
        return _offsets(
            await self._admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
        )

    async def starting(self, partitions: Collection[TopicPartition], bound: Bound) -> Positions:
        """Return where to start; raises OptionError if the bound does not say it for all."""
        if isinstance(bound, AtTimestamp | AtTimestamps):
            found, late = await self._at_times(partitions, bound)
            if late and not self._options.latest_if_no_timestamp:
                raise OptionError(
                    f"{bound.option}: no record of {_listed(late)} is that late; take an earlier "
                    "time, or set startingOffsetsByTimestampStrategy to latest"
                )
            return {**found, **(await self.ends(late))}
        return await self._at_bound(partitions, bound)

    async def ending(self, partitions: Collection[TopicPartition], bound: Bound) -> Positions:
        """Return where to end; raises OptionError if the bound does not say it for all."""
        if isinstance(bound, AtTimestamp | AtTimestamps):
            found, late = await self._at_times(partitions, bound)
            return {**found, **(await self.ends(late))}
        return await self._at_bound(partitions, bound)

    async def since(self, partitions: Collection[TopicPartition], timestamp_ms: int) -> Positions:
        """Return where the first record at a time or later is; where there is none, the end."""
        found = await self._at(dict.fromkeys(partitions, timestamp_ms))
        late = [partition for partition in partitions if partition not in found]
        return {**found, **(await self.ends(late))}

    async def wait_for_records(self, ends: Positions, max_wait_ms: int) -> None:
        """Return when there may be records past the ends that are known, or after a while."""
        await self._admin.wait_for_records(
            ends, max_wait_ms=max_wait_ms, isolation_level=self._options.isolation_level
        )

    async def report(self, group_id: str, positions: Positions) -> None:
        """Commit where a query is to a consumer group; raises what a group refuses."""
        await self._admin.groups.alter_offsets(group_id, positions)

    async def _at_bound(
        self, partitions: Collection[TopicPartition], bound: OffsetSpec | AtOffsets
    ) -> Positions:
        if isinstance(bound, OffsetSpec):
            return await self._at(dict.fromkeys(partitions, bound))
        await self._check_names_all(bound.option, bound.offsets, partitions)
        specs = {EARLIEST: OffsetSpec.EARLIEST, LATEST: OffsetSpec.LATEST}
        special = {p: specs[at] for p, at in bound.offsets.items() if at in specs}
        return {**bound.offsets, **(await self._at(special))}

    async def _at_times(
        self, partitions: Collection[TopicPartition], bound: AtTimestamp | AtTimestamps
    ) -> tuple[Positions, Collection[TopicPartition]]:
        """Return what was found, and the partitions that have no record that late."""
        if isinstance(bound, AtTimestamps):
            await self._check_names_all(bound.option, bound.timestamps_ms, partitions)
            wanted = bound.timestamps_ms
        else:
            wanted = dict.fromkeys(partitions, bound.timestamp_ms)
        found = await self._at(wanted)
        return found, sorted(wanted.keys() - found.keys())

    async def _check_names_all(
        self, option: str, given: Positions, partitions: Collection[TopicPartition]
    ) -> None:
        wanted = set(partitions)
        if other := given.keys() - wanted:
            await self._refuse_others(option, other, wanted)
        if lacking := wanted - given.keys():
            raise OptionError(f"{option} must name all partitions, and lacks {_listed(lacking)}")

    async def _refuse_others(
        self, option: str, other: Collection[TopicPartition], wanted: Collection[TopicPartition]
    ) -> NoReturn:
        """Raise OptionError for partitions that are not read: their topic may be misspelt."""
        topics = {each.topic for each in other} - {each.topic for each in wanted}
        described = await self._admin.describe_topics(topics)
        if unknown := sorted(topics - described.topics.keys()):
            raise OptionError(
                f"{option} names {', '.join(unknown)}, and the cluster has no topic of that name:"
                " see whether it is right"
            )
        if topics:
            raise OptionError(
                f"{option} names {', '.join(sorted(topics))}, which the source does not read: see"
                f" whether {' or '.join(SUBSCRIPTIONS)} names it"
            )
        raise OptionError(f"{option} names {_listed(other)}, which are not read or not there")

    async def _at(self, wanted: Mapping[TopicPartition, OffsetSpec | int]) -> Positions:
        if not wanted:
            return {}
        return _offsets(
            await self._admin.list_offsets(wanted, isolation_level=self._options.isolation_level)
        )


def _offsets(found: Mapping[TopicPartition, OffsetAndTimestamp | None]) -> Positions:
    return {each: at.offset for each, at in found.items() if at is not None}


def _seen(described: TopicsDescription, options: SourceOptions) -> Seen:
    there = {
        TopicPartition(topic.name, partition.partition)
        for topic in described.topics.values()
        for partition in topic.partitions
    }
    missing: list[str] = []
    match options.subscription:
        case Partitions(wanted):
            missing = [str(each) for each in sorted(wanted - there)]
            there &= wanted
        case Topics(names):
            missing = [name for name in names if name not in described.topics]
        case Pattern():
            pass
    return Seen(
        cluster_id=described.cluster_id,
        topic_ids={name: topic.topic_id for name, topic in sorted(described.topics.items())},
        partitions=tuple(sorted(there)),
        missing=tuple(missing),
    )


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))
