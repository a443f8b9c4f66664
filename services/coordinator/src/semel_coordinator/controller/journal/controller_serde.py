"""The controller's records as protobuf, ``semel/coordinator/journal/v1/controller.proto``."""

from typing import assert_never

from semel.coordinator.journal.v1 import controller_pb2 as journal
from semel.coordinator.journal.v1.journal_pb2 import JournalRecord
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
from semel_runtime.access.access_serde import (
    acl_from_journal,
    acl_to_journal,
    quota_from_journal,
    quota_to_journal,
)
from semel_runtime.cluster.metadata_image import Layout
from semel_runtime.cluster.metadata_serde import (
    instance_from_journal,
    instance_to_journal,
    internal_from_journal,
    internal_to_journal,
    topic_from_journal,
    topic_to_journal,
)
from semel_runtime.machine import UnknownRecordError


def controller_to_journal(record: ControllerRecord) -> JournalRecord:
    """Write one record."""
    match record:
        case ClusterRecord():
            return JournalRecord(cluster=_cluster_to_journal(record))
        case InstanceRecord():
            return JournalRecord(instance=_instance_to_journal(record))
        case TopicRecord():
            return JournalRecord(topic=_topic_to_journal(record))
        case TopicDeletedRecord():
            deleted = journal.TopicDeletedRecord(version=record.version, topic_id=record.topic_id)
            return JournalRecord(topic_deleted=deleted)
        case AclRecord() | AclDeletedRecord() | ClientQuotaRecord():
            return _access_to_journal(record)
        case InternalPartitionRecord():
            return JournalRecord(internal_partition=_internal_to_journal(record))
        case _:
            assert_never(record)


def controller_from_journal(record: JournalRecord) -> ControllerRecord:
    """Read one of the controller's records."""
    match record.WhichOneof("record"):
        case "cluster":
            return _cluster_from_journal(record.cluster)
        case "instance":
            return _instance_from_journal(record.instance)
        case "topic":
            return _topic_from_journal(record.topic)
        case "topic_deleted":
            deleted = record.topic_deleted
            return TopicDeletedRecord(version=deleted.version, topic_id=deleted.topic_id)
        case "acl":
            return AclRecord(version=record.acl.version, acl=acl_from_journal(record.acl.acl))
        case "acl_deleted":
            gone = record.acl_deleted
            return AclDeletedRecord(version=gone.version, acl=acl_from_journal(gone.acl))
        case "client_quota":
            limited = record.client_quota
            return ClientQuotaRecord(
                version=limited.version, client_quota=quota_from_journal(limited.client_quota)
            )
        case "internal_partition":
            return _internal_from_journal(record.internal_partition)
        case kind:
            raise UnknownRecordError(f"{kind} is no record of the controller's")


def _access_to_journal(
    record: AclRecord | AclDeletedRecord | ClientQuotaRecord,
) -> JournalRecord:
    version = record.version
    match record:
        case AclRecord():
            return JournalRecord(
                acl=journal.AclRecord(version=version, acl=acl_to_journal(record.acl))
            )
        case AclDeletedRecord():
            gone = journal.AclDeletedRecord(version=version, acl=acl_to_journal(record.acl))
            return JournalRecord(acl_deleted=gone)
        case ClientQuotaRecord():
            limited = journal.ClientQuotaRecord(
                version=version, client_quota=quota_to_journal(record.client_quota)
            )
            return JournalRecord(client_quota=limited)
        case _:
            assert_never(record)


def _cluster_to_journal(record: ClusterRecord) -> journal.ClusterRecord:
    return journal.ClusterRecord(
        cluster_id=record.cluster_id,
        version=record.version,
        transaction_log_partitions=record.layout.transaction_log_partitions,
        coordinators=record.layout.coordinators,
        group_partitions=record.layout.group_partitions,
        group_coordinators=record.layout.group_coordinators,
    )


def _cluster_from_journal(record: journal.ClusterRecord) -> ClusterRecord:
    return ClusterRecord(
        version=record.version,
        cluster_id=record.cluster_id,
        layout=Layout(
            transaction_log_partitions=record.transaction_log_partitions,
            coordinators=record.coordinators,
            group_partitions=record.group_partitions,
            group_coordinators=record.group_coordinators,
        ),
    )


def _instance_to_journal(record: InstanceRecord) -> journal.InstanceRecord:
    return journal.InstanceRecord(
        version=record.version,
        instance=instance_to_journal(record.instance),
        claim_epoch=record.claim_epoch,
        claim_token=record.claim_token,
        journal_end_offset=record.journal_end_offset,
    )


def _instance_from_journal(record: journal.InstanceRecord) -> InstanceRecord:
    return InstanceRecord(
        version=record.version,
        instance=instance_from_journal(record.instance),
        claim_epoch=record.claim_epoch,
        claim_token=record.claim_token,
        journal_end_offset=record.journal_end_offset,
    )


def _topic_to_journal(record: TopicRecord) -> journal.TopicRecord:
    return journal.TopicRecord(version=record.version, topic=topic_to_journal(record.topic))


def _topic_from_journal(record: journal.TopicRecord) -> TopicRecord:
    return TopicRecord(version=record.version, topic=topic_from_journal(record.topic))


def _internal_to_journal(record: InternalPartitionRecord) -> journal.InternalPartitionRecord:
    return journal.InternalPartitionRecord(
        version=record.version, internal_partition=internal_to_journal(record.internal)
    )


def _internal_from_journal(record: journal.InternalPartitionRecord) -> InternalPartitionRecord:
    return InternalPartitionRecord(
        version=record.version, internal=internal_from_journal(record.internal_partition)
    )
