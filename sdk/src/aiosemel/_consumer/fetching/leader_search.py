"""The search for the leaders of partitions, and for the ids of their topics."""

from collections.abc import Sequence

from aiosemel._cluster.permanent_errors import UNHEALED
from aiosemel._cluster.routes import Cluster
from aiosemel._consumer.fetching.held_partitions import Asked, HeldPartitions
from aiosemel._consumer.fetching.recovery import AGAIN, Recovery
from aiosemel._consumer.positions import Positions
from aiosemel.errors import SemelError, UnknownTopicIdError, UnknownTopicOrPartitionError
from semel.common.v1.records_pb2 import RecordBatch


class LeaderSearch:
    """Finds leaders for one consumer, topic by topic; consumers of one client share requests."""

    def __init__(
        self,
        cluster: Cluster,
        positions: Positions[RecordBatch],
        holds: HeldPartitions,
        recovery: Recovery,
    ) -> None:
        self._cluster = cluster
        self._positions = positions
        self._holds = holds
        self._recovery = recovery
        self.reports_missing = False
        """Whether the user named the partitions, and so is told when one is not there."""

    async def find(self, topic: str, asked: Sequence[Asked]) -> None:
        """Find the leaders of a topic's partitions; no other request asks about them."""
        what = search_for(topic)
        try:
            await self._find_topic(topic, asked)
        except UNHEALED as error:
            self._holds.fail(asked, error)
        except AGAIN as error:
            if self.reports_missing and isinstance(error, UnknownTopicOrPartitionError):
                self._holds.fail(asked, error)
            else:
                await self._recovery.recover(what, error)
        except SemelError as error:
            self._holds.fail(asked, error)
        else:
            self._recovery.succeeded(what)
            for item in asked:
                self._identify(item)

    async def _find_topic(self, topic: str, asked: Sequence[Asked]) -> None:
        deadline = self._recovery.deadline()
        # The known topic has no leader; or only its topic id was missing, and is fresh.
        stale = self._cluster.cache.cached_topic(topic) is not None and not all(
            not item.topic_id
            and self._cluster.cache.was_just_asked_for(*item.ticket.topic_partition)
            for item in asked
        )
        await self._cluster.cache.topic(topic, deadline)
        if stale:
            await self._cluster.cache.refresh(deadline)

    def _identify(self, asked: Asked) -> None:
        name, partition = asked.ticket.topic_partition
        topic = self._cluster.cache.cached_topic(name)
        if topic is None:
            return
        if not asked.topic_id:
            self._positions.identify(asked.ticket, topic.topic_id)
        if not self.reports_missing:
            return
        if asked.topic_id not in {"", topic.topic_id}:
            gone = f"topic {name} with id {asked.topic_id} is gone, its id is {topic.topic_id}"
            self._positions.failed(asked.ticket, UnknownTopicIdError(gone))
        if not 0 <= partition < len(topic.partitions):
            count = len(topic.partitions)
            none = f"topic {name} has {count} partitions, no partition {partition}"
            self._positions.failed(asked.ticket, UnknownTopicOrPartitionError(none))


def search_for(topic: str) -> str:
    """Return what failures of this search are noted as."""
    return f"for topic {topic}"
