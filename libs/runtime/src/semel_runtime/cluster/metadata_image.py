"""The cluster's metadata at one version, as plain values. Pure."""

from enum import IntEnum

from msgspec import Struct

from semel_runtime.access.acls import Acl
from semel_runtime.access.client_quotas import ClientQuota
from semel_runtime.cluster.topic_options import Overrides, TopicConfig, topic_config


class ServiceRole(IntEnum):
    """What an instance does; the numbers of ``semel.coordinator.v1.ServiceRole``."""

    COORDINATOR = 1
    BROKER = 2
    GROUP_COORDINATOR = 3


def role_text(role: ServiceRole) -> str:
    """Name a role for people: ``group coordinator``."""
    return role.name.lower().replace("_", " ")


class Listener(Struct, frozen=True, kw_only=True):
    """Where clients of one listener reach an instance."""

    name: str
    host: str
    port: int

    @property
    def address(self) -> str:
        """The address as ``host:port``, with IPv6 hosts in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Instance(Struct, frozen=True, kw_only=True):
    """One process of the cluster."""

    role: ServiceRole
    instance_id: int
    listeners: tuple[Listener, ...]
    decommissioned: bool = False
    """Whether it is to lead nothing any more."""

    def listener(self, name: str) -> Listener | None:
        """Return the listener of this name."""
        return next((listener for listener in self.listeners if listener.name == name), None)


class Layout(Struct, frozen=True, kw_only=True):
    """Numbers that are fixed when a cluster is made; see ``ClusterLayout`` in cluster.proto."""

    transaction_log_partitions: int
    coordinators: int
    group_partitions: int
    group_coordinators: int


class PartitionLeader(Struct, frozen=True):
    """Who leads a partition."""

    leader_id: int
    leader_epoch: int
    moving_to: int | None = None
    """The instance that takes over, while the partition moves."""

    @property
    def next_leader_id(self) -> int:
        """Who leads it once it moves no more."""
        return self.leader_id if self.moving_to is None else self.moving_to


class InternalPartition(Struct, frozen=True, kw_only=True):
    """A partition of groups or of the transaction log that was moved, or moves."""

    topic: str
    """An ``InternalTopic``, or one of a later release."""
    partition: int
    leader: PartitionLeader
    """A group coordinator, or a coordinator."""


class Topic(Struct, frozen=True, kw_only=True):
    """A topic; its partitions are numbered from 0."""

    topic_id: str
    name: str
    partitions: tuple[PartitionLeader, ...]
    configs: Overrides = ()
    """The options that were set."""

    @property
    def config(self) -> TopicConfig:
        """All its options."""
        return topic_config(self.configs)


class ClusterImage(Struct, frozen=True, kw_only=True):
    """Everything that every instance knows: instances by role and id, topics by name, rules."""

    cluster_id: str
    version: int
    layout: Layout
    instances: tuple[Instance, ...]
    topics: tuple[Topic, ...]
    acls: tuple[Acl, ...] = ()
    """In their order."""
    client_quotas: tuple[ClientQuota, ...] = ()
    """By user."""
    internal_partitions: tuple[InternalPartition, ...] = ()
    """By topic and number; all others are led as the layout says, under leader epoch 0."""
