"""What the controller knows: records in, indexes and the image out. Nothing else changes it."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, assert_never

from msgspec.structs import replace

from semel_coordinator.controller import CONTROLLER_ID
from semel_coordinator.controller.machine.records import (
    AclDeletedRecord,
    AclRecord,
    ClientQuotaRecord,
    ClusterRecord,
    ControllerRecord,
    InstanceRecord,
    InternalPartitionRecord,
    TopicDeletedRecord,
    TopicRecord,
)
from semel_coordinator.controller.machine.topic_names import collision_key
from semel_runtime.access.acls import Acl
from semel_runtime.access.client_quotas import ClientQuota
from semel_runtime.cluster.metadata_image import (
    ClusterImage,
    Instance,
    ServiceRole,
    Topic,
    role_text,
)


class InstanceKey(NamedTuple):
    """Names an instance."""

    role: ServiceRole
    instance_id: int

    def __str__(self) -> str:
        """Name it for people: ``group coordinator 1``."""
        return f"{role_text(self.role)} {self.instance_id}"


CONTROLLER = InstanceKey(ServiceRole.COORDINATOR, CONTROLLER_ID)
"""The instance that decides on all of this."""


class Address(NamedTuple):
    """Where an instance is reached. Instances of other roles may share it, behind one proxy."""

    role: ServiceRole
    host_and_port: str


class ControllerState:
    """The cluster, its instances, its topics, and permissions."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.version = 0
        """Of the metadata: how many changes others could see."""
        self.cluster: ClusterRecord | None = None
        self.instances: dict[InstanceKey, InstanceRecord] = {}
        self.holders: dict[Address, InstanceKey] = {}
        """The instance at an address."""
        self.topics: dict[str, TopicRecord] = {}
        """By topic id."""
        self.topic_ids: dict[str, str] = {}
        """By name."""
        self.names: dict[str, str] = {}
        """By collision key."""
        self.led: Counter[int] = Counter()
        """How many partitions each broker leads, or will once they move no more."""
        self.acls: dict[Acl, int] = {}
        """Each with the offset of its record."""
        self.client_quotas: dict[str, ClientQuota] = {}
        """By user; only users with limits."""
        self._quota_offsets: dict[str, int] = {}
        self.internal: dict[tuple[str, int], tuple[int, InternalPartitionRecord]] = {}
        """Partitions of internal topics that were moved, each with the offset of its record."""
        self._offsets: dict[str | InstanceKey, int] = {}
        self._cluster_offset = 0
        self._image: ClusterImage | None = None

    @property
    def partition_count(self) -> int:
        """Partitions of all topics."""
        return self.led.total()

    def made_cluster(self) -> ClusterRecord:
        """Return the cluster, which is made before anything else is asked."""
        assert self.cluster is not None, "the cluster is made first"
        return self.cluster

    def image(self) -> ClusterImage:
        """Return what everybody may know; the same object until something changes."""
        if self._image is None:
            cluster = self.made_cluster()
            self._image = ClusterImage(
                cluster_id=cluster.cluster_id,
                version=self.version,
                layout=cluster.layout,
                instances=tuple(self.instances[key].instance for key in sorted(self.instances)),
                topics=tuple(self._topic(name) for name in sorted(self.topic_ids)),
                acls=tuple(sorted(self.acls)),
                client_quotas=tuple(sorted(self.client_quotas.values())),
                internal_partitions=tuple(
                    self.internal[key][1].internal for key in sorted(self.internal)
                ),
            )
        return self._image

    def replay(self, offset: int, record: ControllerRecord) -> None:
        """Apply one record."""
        if not (isinstance(record, InstanceRecord) and self._is_shown(record)):
            self._image = None
        self.version = record.version
        match record:
            case ClusterRecord():
                self.cluster, self._cluster_offset = record, offset
            case InstanceRecord():
                self._put_instance(offset, record)
            case TopicRecord():
                self._put_topic(offset, record)
            case TopicDeletedRecord():
                self._remove_topic(record.topic_id)
            case AclRecord():
                self.acls[record.acl] = offset
            case AclDeletedRecord():
                del self.acls[record.acl]
            case ClientQuotaRecord():
                self._put_client_quota(offset, record.client_quota)
            case InternalPartitionRecord():
                moved = record.internal
                self.internal[moved.topic, moved.partition] = (offset, record)
            case _:
                assert_never(record)

    def snapshot(self) -> Iterable[tuple[int, ControllerRecord]]:
        """Return every entity's last record; that of the cluster, with the version, comes last."""
        entries: list[tuple[int, ControllerRecord]] = [
            (self._offsets[key], instance) for key, instance in self.instances.items()
        ]
        entries += [(self._offsets[topic_id], topic) for topic_id, topic in self.topics.items()]
        entries += [
            (offset, AclRecord(version=self.version, acl=acl)) for acl, offset in self.acls.items()
        ]
        entries += [
            (
                self._quota_offsets[user],
                ClientQuotaRecord(version=self.version, client_quota=quota),
            )
            for user, quota in self.client_quotas.items()
        ]
        entries += self.internal.values()
        if self.cluster is not None:
            entries.append((self._cluster_offset, replace(self.cluster, version=self.version)))
        return entries

    def limits_of(self, user: str) -> tuple[tuple[str, float], ...]:
        """Return a user's own limits."""
        quota = self.client_quotas.get(user)
        return () if quota is None else quota.limits

    def _is_shown(self, record: InstanceRecord) -> bool:
        """Whether the image shows an instance as a record says."""
        known = self.instances.get(key_of(record.instance))
        same_place = known is not None and known.instance == record.instance
        return same_place and record.version == self.version

    def _put_client_quota(self, offset: int, quota: ClientQuota) -> None:
        if quota.limits:
            self.client_quotas[quota.user] = quota
            self._quota_offsets[quota.user] = offset
        else:
            self.client_quotas.pop(quota.user, None)
            self._quota_offsets.pop(quota.user, None)

    def _topic(self, name: str) -> Topic:
        return self.topics[self.topic_ids[name]].topic

    def _put_instance(self, offset: int, record: InstanceRecord) -> None:
        key = key_of(record.instance)
        known = self.instances.get(key)
        for address in () if known is None else addresses_of(known.instance):
            self.holders.pop(address, None)
        for address in addresses_of(record.instance):
            self.holders[address] = key
        self.instances[key] = record
        self._offsets[key] = offset

    def _put_topic(self, offset: int, record: TopicRecord) -> None:
        topic = record.topic
        known = self.topics.get(topic.topic_id)
        if known is not None:
            self.led.subtract(leader.next_leader_id for leader in known.topic.partitions)
        self.topics[topic.topic_id] = record
        self.topic_ids[topic.name] = topic.topic_id
        self.names[collision_key(topic.name)] = topic.name
        self.led.update(leader.next_leader_id for leader in topic.partitions)
        self._offsets[topic.topic_id] = offset

    def _remove_topic(self, topic_id: str) -> None:
        topic = self.topics.pop(topic_id).topic
        del self.topic_ids[topic.name]
        del self.names[collision_key(topic.name)]
        self.led.subtract(leader.next_leader_id for leader in topic.partitions)
        del self._offsets[topic_id]


def key_of(instance: Instance) -> InstanceKey:
    """Return an instance's key."""
    return InstanceKey(instance.role, instance.instance_id)


def addresses_of(instance: Instance) -> Iterable[Address]:
    """Return where an instance is reached."""
    return (Address(instance.role, listener.address) for listener in instance.listeners)
