"""The topics' part of the admin client: creates, changes, deletes and describes topics."""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import TypeAlias

from aiosemel._admin.admin_part import AdminPart
from aiosemel._cluster import from_wire
from aiosemel._cluster.metadata import TopicMetadata, topics_in
from aiosemel._cluster.metadata_cache import TOPICS_IN_PAGE, TOPICS_IN_REQUEST
from aiosemel._cluster.pages import pages
from aiosemel._cluster.retry import Deadline
from aiosemel.errors import (
    InvalidPartitionsError,
    RetriableError,
    SemelError,
    TopicAlreadyExistsError,
    TopicNotFoundError,
    UnknownTopicOrPartitionError,
)
from aiosemel.types.descriptions import ConfigDescription, TopicDescription, TopicsDescription
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel_common.library_log import get_logger
from semel_common.wire import methods, status
from semel_common.wire.methods import Method, Req, Res

_log = get_logger(__name__)

ConfigValue: TypeAlias = str | int | float
"""What an option may be set to."""


class TopicAdmin(AdminPart):
    """Creates, changes, deletes and describes topics."""

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        configs: Mapping[str, ConfigValue] | None = None,
        exist_ok: bool = False,
    ) -> TopicDescription:
        """Create a topic and spread it over the brokers; ``partitions`` None: as many as usual.

        ``configs`` are options by Kafka's names, such as ``{"retention.ms": 3_600_000}``; see
        ``describe_configs``. Raises TopicAlreadyExistsError unless ``exist_ok``, InvalidTopicError,
        InvalidPartitionsError, InvalidConfigError. If an answer was lost on the way, the topic that
        exists already may be the one that this call has created.
        """
        if partitions == 0:
            raise InvalidPartitionsError(f"topic {name!r} cannot have 0 partitions")
        new = cluster.NewTopic(
            name=name, partitions=partitions or 0, configs=_config_texts(configs or {})
        )
        topic = await self._create(new, self._deadline(), exist_ok=exist_ok)
        return from_wire.topic(topic)

    async def _create(
        self, new: cluster.NewTopic, deadline: Deadline, *, exist_ok: bool
    ) -> TopicMetadata:
        """Create a topic, and return it, once this client knows of it.

        Another client may have deleted the topic that this client knew by that name.
        """
        cache = self._cluster.cache
        before = cache.cached_topic(new.name)
        try:
            await self._create_when_possible(new, deadline)
        except TopicAlreadyExistsError:
            if not exist_ok:
                raise
            if before is not None:
                await cache.refresh(deadline)
            return await cache.topic(new.name, deadline)
        if before is None:
            return await cache.topic(new.name, deadline)
        cache.forget_topic(new.name)
        pauses = self._cluster.backoff()
        while (topic := await cache.topic(new.name, deadline)).topic_id == before.topic_id:
            cache.forget_topic(new.name)  # The instance that answered lags behind.
            await asyncio.sleep(min(next(pauses), deadline.remaining_ms()) / 1000)
        return topic

    async def _create_when_possible(self, new: cluster.NewTopic, deadline: Deadline) -> None:
        """Create a topic; until the deadline, wait for brokers that can take its partitions."""

        async def once() -> None:
            request = cluster.CreateTopicsRequest(topics=[new])
            response = await self._ask(methods.CREATE_TOPICS, request, deadline)
            for topic in response.topics:
                if topic.HasField("error"):
                    raise status.from_value(topic.error)

        await self._cluster.insist(once, deadline=deadline)

    async def delete_topic(self, name: str, *, missing_ok: bool = False) -> None:
        """Delete a topic with all that is in it.

        Raises UnknownTopicOrPartitionError unless ``missing_ok``.
        """
        request = cluster.DeleteTopicsRequest(topics=[name])
        response = await self._ask(methods.DELETE_TOPICS, request, self._deadline())
        self._cluster.cache.forget_topic(name)
        for topic in response.topics:
            error = _error(topic)
            if error is not None and not (
                missing_ok and isinstance(error, UnknownTopicOrPartitionError)
            ):
                raise error

    async def create_partitions(
        self, topic: str, partitions: int, *, validate_only: bool = False
    ) -> int:
        """Give a topic more partitions, ``partitions`` all together; returns their number.

        From then on, a record with a key may go to another partition than earlier records with that
        key. Readers that rely on the order of a key must first read the log to its end. This client
        knows the new partitions when the call returns; other producers notice within
        ``metadata_max_age_ms``, groups at their members' next heartbeats. Raises
        InvalidPartitionsError unless the count is above the present one, and
        UnknownTopicOrPartitionError. If the answer to an earlier attempt was lost, the present
        count may already be the result of this call.
        """
        more = cluster.MorePartitions(name=topic, partitions=partitions)
        deadline = self._deadline()
        request = cluster.CreatePartitionsRequest(topics=[more], validate_only=validate_only)
        (answered,) = (await self._ask(methods.CREATE_PARTITIONS, request, deadline)).topics
        if answered.HasField("error"):
            raise status.from_value(answered.error)
        if not validate_only:
            await self._until_known(topic, answered.partitions, deadline)
        return answered.partitions

    async def _until_known(self, topic: str, partitions: int, deadline: Deadline) -> None:
        """Wait until this client knows of that many partitions: a coordinator may lag behind."""
        pauses = self._cluster.backoff()
        while len((await self._cluster.cache.topic(topic, deadline)).partitions) < partitions:
            await asyncio.sleep(min(next(pauses), deadline.remaining_ms()) / 1000)
            await self._cluster.cache.refresh(deadline)

    async def describe_configs(self, topic: str) -> dict[str, ConfigDescription]:
        """Return all options of a topic, by name; raises UnknownTopicOrPartitionError."""
        request = cluster.DescribeConfigsRequest(topics=[topic])
        response = await self._ask(methods.DESCRIBE_CONFIGS, request, self._deadline())
        (described,) = response.topics
        if described.HasField("error"):
            raise status.from_value(described.error)
        return {entry.name: from_wire.CONFIG.read(entry) for entry in described.entries}

    async def incremental_alter_configs(
        self,
        topic: str,
        *,
        set_configs: Mapping[str, ConfigValue] | None = None,
        reset: Iterable[str] = (),
        validate_only: bool = False,
    ) -> dict[str, str]:
        """Set some options of a topic, give others their defaults again, and leave the rest.

        Returns the options that are set then; ``validate_only`` changes nothing. May be repeated.
        Raises UnknownTopicOrPartitionError, and InvalidConfigError naming option and value.
        """
        change = cluster.TopicConfigChange(
            name=topic, set=_config_texts(set_configs or {}), reset=list(reset)
        )
        request = cluster.IncrementalAlterConfigsRequest(
            topics=[change], validate_only=validate_only
        )
        response = await self._ask(methods.INCREMENTAL_ALTER_CONFIGS, request, self._deadline())
        (altered,) = response.topics
        if altered.HasField("error"):
            raise status.from_value(altered.error)
        return dict(altered.configs)

    async def _ask(self, method: Method[Req, Res], request: Req, deadline: Deadline) -> Res:
        route = self._cluster.any_coordinator()
        return await self._cluster.call(route, method, request, deadline=deadline)

    async def list_topics(self) -> tuple[TopicDescription, ...]:
        """Return all topics, by name."""

        def ask(token: str) -> Awaitable[cluster.MetadataResponse]:
            return self._metadata(
                cluster.MetadataRequest(all_topics=True, limit=TOPICS_IN_PAGE, page_token=token)
            )

        topics = [topic async for page in pages(ask) for topic in topics_in(page)]
        return tuple(map(from_wire.topic, sorted(topics, key=lambda topic: topic.name)))

    async def describe_topic(self, name: str) -> TopicDescription:
        """Return one topic; raises UnknownTopicOrPartitionError, InvalidTopicError."""
        response = await self._topics([name])
        for topic in response.topics:
            if topic.HasField("error"):
                raise status.from_value(topic.error)
        return from_wire.topic(topics_in(response)[0])

    async def describe_topics(self, names: Iterable[str]) -> TopicsDescription:
        """Return those of some topics that are there, as this client knows them from now on."""
        wanted, cluster_id, topics = list(names), "", dict[str, TopicDescription]()
        for start in range(0, max(1, len(wanted)), TOPICS_IN_REQUEST):
            some = wanted[start : start + TOPICS_IN_REQUEST]
            response = await self._topics(some)
            self._cluster.cache.learn(response)
            cluster_id = response.cluster_id
            topics |= {topic.name: from_wire.topic(topic) for topic in topics_in(response)}
        return TopicsDescription(cluster_id=cluster_id, topics=topics)

    async def _topics(self, names: Sequence[str]) -> cluster.MetadataResponse:
        """Return an answer for topics, with the controller's word on what an instance misses.

        A topic that another client has just created may be on its way to the instance. While the
        controller is away, the answer of the instance holds.
        """
        answer = await self._metadata(cluster.MetadataRequest(topics=names))
        errors = map(_error, answer.topics)
        if not any(isinstance(error, UnknownTopicOrPartitionError) for error in errors):
            return answer
        request = cluster.MetadataRequest(topics=names, from_controller=True)
        route, deadline = self._cluster.any_coordinator(), self._deadline()
        try:
            known = await self._cluster.attempt(route, methods.METADATA, request, deadline=deadline)
        except RetriableError as error:
            _log.debug("the controller does not answer, an instance has: %s", error)
            return answer
        for topic in known.topics:
            found = _error(topic)
            if isinstance(found, TopicNotFoundError):
                missing = UnknownTopicOrPartitionError(found.message, **found.details)
                topic.error.CopyFrom(status.to_value(missing))
        return known

    async def _metadata(self, request: cluster.MetadataRequest) -> cluster.MetadataResponse:
        """Ask until an instance answers that does not lag behind what this client has seen."""
        deadline, pauses = self._deadline(), self._cluster.backoff()
        while True:
            response = await self._cluster.call(
                self._cluster.any_coordinator(), methods.METADATA, request, deadline=deadline
            )
            if not self._cluster.cache.is_ahead_of(response):
                return response
            await asyncio.sleep(min(next(pauses), deadline.remaining_ms()) / 1000)


def _config_texts(configs: Mapping[str, ConfigValue]) -> dict[str, str]:
    return {name: str(value) for name, value in configs.items()}


def _error(topic: cluster.Topic | cluster.DeleteTopicResult) -> SemelError | None:
    return status.from_value(topic.error) if topic.HasField("error") else None
