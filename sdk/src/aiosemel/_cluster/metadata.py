"""The cluster as a client knows it: one version of the metadata, as values, with each leader.

Nothing here does I/O. A look-up that fails raises the error that makes its caller refresh.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

from aiosemel.errors import (
    BrokerNotAvailableError,
    CoordinatorNotAvailableError,
    InconsistentClusterIdError,
    SemelError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from aiosemel.types.descriptions import ServiceRole
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel_common.ids import (
    InternalTopic,
    TopicPartition,
    owner_of,
    partition_for_id,
    transaction_log_partition_of,
)
from semel_common.wire import status

BROKER = cluster.SERVICE_ROLE_BROKER
COORDINATOR = cluster.SERVICE_ROLE_COORDINATOR
GROUP_COORDINATOR = cluster.SERVICE_ROLE_GROUP_COORDINATOR
CONTROLLER_ID = 0
"""The controller is this coordinator."""
Role: TypeAlias = cluster.ServiceRole.ValueType
ROLES: Mapping[Role, ServiceRole] = {
    COORDINATOR: ServiceRole.COORDINATOR,
    BROKER: ServiceRole.BROKER,
    GROUP_COORDINATOR: ServiceRole.GROUP_COORDINATOR,
}


_partition_for_id = lru_cache(maxsize=4_096)(partition_for_id)
"""Every request of a transaction asks for the coordinator of the same id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
    """One partition: ``leader_id`` is the instance id of the broker that leads it."""

    partition: int
    leader_id: int
    leader_epoch: int
    moving_to: int | None = None
    """The broker that takes over, while the partition moves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    """One topic; ``partitions`` by their number."""

    name: str
    topic_id: str
    partitions: tuple[PartitionMetadata, ...]
    configs: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Options that were set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How transactional ids and groups spread over instances; fixed when a cluster is made."""

    transaction_log_partitions: int
    coordinators: int
    group_partitions: int
    group_coordinators: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMetadata:
    """One version of the cluster, with the topics that this client asked for."""

    cluster_id: str
    version: int
    layout: Layout
    addresses: Mapping[tuple[Role, int], str]
    """``host:port`` of each instance, by role and instance id."""
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    """By name."""
    topic_errors: Mapping[str, SemelError] = field(default_factory=dict)
    """Why a topic that was asked for is not there, by name."""
    topics_by_id: Mapping[str, TopicMetadata] = field(default_factory=dict)
    """The same topics, by id."""
    moved: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Who leads partitions of internal topics that the layout gives to others."""
    decommissioned: frozenset[tuple[Role, int]] = frozenset()
    """Instances that are to lead nothing any more."""

    def topic_by_id(self, topic_id: str) -> TopicMetadata:
        """Return a topic; raises UnknownTopicIdError."""
        topic = self.topics_by_id.get(topic_id)
        if topic is None:
            raise UnknownTopicIdError(f"topic id {topic_id} is not known")
        return topic

    def leader_of(self, topic_partition: TopicPartition) -> int:
        """Return the instance id of the broker that leads a partition.

        Raises UnknownTopicIdError, UnknownTopicOrPartitionError.
        """
        topic = self.topic_by_id(topic_partition.topic_id)
        if not 0 <= topic_partition.partition < len(topic.partitions):
            raise UnknownTopicOrPartitionError(
                f"topic {topic.name} has {len(topic.partitions)} partitions, "
                f"no partition {topic_partition.partition}"
            )
        return topic.partitions[topic_partition.partition].leader_id

    def broker_address(self, broker_id: int) -> str:
        """Return where a broker is; raises BrokerNotAvailableError."""
        address = self.addresses.get((BROKER, broker_id))
        if address is None:
            raise BrokerNotAvailableError(f"broker {broker_id} is not registered")
        return address

    def coordinator_address(self, transactional_id: str) -> str:
        """Return where the coordinator of a transactional id is.

        Raises CoordinatorNotAvailableError.
        """
        partition = _partition_for_id(transactional_id, self.layout.transaction_log_partitions)
        return self._transaction_log_address(partition)

    def coordinator_address_of_producer(self, producer_id: int) -> str:
        """Return where the coordinator is that gave out a producer id.

        Raises CoordinatorNotAvailableError.
        """
        return self._transaction_log_address(transaction_log_partition_of(producer_id))

    def group_coordinator_address(self, group_id: str) -> str:
        """Return where the coordinator of a group is; raises CoordinatorNotAvailableError."""
        partition = _partition_for_id(group_id, self.layout.group_partitions)
        return self.instance_address(GROUP_COORDINATOR, self._group_leader(partition))

    def instance_address(self, role: Role, instance_id: int) -> str:
        """Return where an instance is; raises CoordinatorNotAvailableError."""
        address = self.addresses.get((role, instance_id))
        if address is None:
            name = f"{ROLES[role]} {instance_id}"
            raise CoordinatorNotAvailableError(f"{name} is not registered")
        return address

    def _transaction_log_address(self, partition: int) -> str:
        return self.instance_address(COORDINATOR, self._transaction_log_leader(partition))

    def instance_ids(self, role: Role) -> tuple[int, ...]:
        """Return the coordinators, or group coordinators, that may be in charge of anything.

        One that is decommissioned and empty is not: it may be gone for good.
        """
        layout = self.layout
        leader_of, partition_count = (
            (self._transaction_log_leader, layout.transaction_log_partitions)
            if role == COORDINATOR
            else (self._group_leader, layout.group_partitions)
        )
        leaders = set(map(leader_of, range(partition_count)))
        others = {number for its, number in self.addresses if its == role}
        closed = {number for its, number in self.decommissioned if its == role}
        return tuple(sorted(leaders | (others - closed)))

    def _group_leader(self, partition: int) -> int:
        moved = self.moved.get((InternalTopic.CONSUMER_OFFSETS, partition))
        return owner_of(partition, self.layout.group_coordinators) if moved is None else moved

    def _transaction_log_leader(self, partition: int) -> int:
        moved = self.moved.get((InternalTopic.TRANSACTION_STATE, partition))
        return owner_of(partition, self.layout.coordinators) if moved is None else moved

    def addresses_of(self, role: Role) -> tuple[str, ...]:
        """Return where all instances of a role are, by instance id."""
        return tuple(address for (its, _), address in sorted(self.addresses.items()) if its == role)


def merge(known: ClusterMetadata | None, response: cluster.MetadataResponse) -> ClusterMetadata:
    """Return the metadata after an answer: topics that it does not name stay as they were.

    An answer that is older than the present metadata, from an instance that lags behind, changes
    nothing. Raises InconsistentClusterIdError for an answer of another cluster.
    """
    answered = _from_response(response)
    if known is None:
        return answered
    if known.cluster_id != answered.cluster_id:
        raise InconsistentClusterIdError(
            f"this client belongs to cluster {known.cluster_id}, but cluster"
            f" {answered.cluster_id} answers; make a new client"
        )
    if answered.version < known.version:
        return known
    gone = answered.topic_errors.keys()
    kept = {name: topic for name, topic in known.topics.items() if name not in gone}
    errors = {n: e for n, e in known.topic_errors.items() if n not in answered.topics}
    topics = {**kept, **answered.topics}
    return replace(
        answered,
        topics=topics,
        topic_errors={**errors, **answered.topic_errors},
        topics_by_id={topic.topic_id: topic for topic in topics.values()},
    )


def without_topic(known: ClusterMetadata, name: str) -> ClusterMetadata:
    """Return the metadata without a topic: a new topic of the same name is a different one."""
    topics = {each: topic for each, topic in known.topics.items() if each != name}
    by_id = {topic.topic_id: topic for topic in topics.values()}
    return replace(known, topics=topics, topics_by_id=by_id)


def topics_in(response: cluster.MetadataResponse) -> list[TopicMetadata]:
    """Return the topics of an answer, without the missing ones."""
    return [_topic(topic) for topic in response.topics if not topic.HasField("error")]


def _from_response(response: cluster.MetadataResponse) -> ClusterMetadata:
    topics = topics_in(response)
    return ClusterMetadata(
        cluster_id=response.cluster_id,
        version=response.version,
        layout=Layout(
            transaction_log_partitions=response.layout.transaction_log_partitions,
            coordinators=response.layout.coordinators,
            group_partitions=response.layout.group_partitions,
            group_coordinators=response.layout.group_coordinators,
        ),
        # An instance has no host if it has no listener of the name by which we came.
        addresses={
            (i.role, i.instance_id): _address(i.host, i.port) for i in response.instances if i.host
        },
        decommissioned=frozenset(
            (i.role, i.instance_id) for i in response.instances if i.decommissioned
        ),
        topics={topic.name: topic for topic in topics},
        topics_by_id={topic.topic_id: topic for topic in topics},
        topic_errors={
            t.name: status.from_value(t.error) for t in response.topics if t.HasField("error")
        },
        moved={
            (
                internal_partition.topic,
                internal_partition.partition.index,
            ): internal_partition.partition.leader_id
            for internal_partition in response.internal_partitions
        },
    )


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _topic(topic: cluster.Topic) -> TopicMetadata:
    partitions = sorted(topic.partitions, key=lambda partition: partition.index)
    return TopicMetadata(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            PartitionMetadata(
                partition=p.index,
                leader_id=p.leader_id,
                leader_epoch=p.leader_epoch,
                moving_to=p.moving_to if p.HasField("moving_to") else None,
            )
            for p in partitions
        ),
        configs=dict(topic.configs),
    )
