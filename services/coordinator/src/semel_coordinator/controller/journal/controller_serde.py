"""The controller's records as protobuf, ``semel/coordinator/journal/v1/controller.proto``.

A table has the plain records.
"""

from msgspec.structs import asdict

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
from semel_runtime.cluster.metadata_serde import (
    internal_from_journal,
    internal_to_journal,
    layout_from_journal,
    topic_from_journal,
    topic_to_journal,
)
from semel_runtime.journal.plain_records import PlainRecords
from semel_runtime.machine import UnknownRecordError

_PLAIN = PlainRecords[ControllerRecord](
    JournalRecord.DESCRIPTOR,
    {
        "instance": InstanceRecord,
        "topic_deleted": TopicDeletedRecord,
        "acl": AclRecord,
        "acl_deleted": AclDeletedRecord,
        "client_quota": ClientQuotaRecord,
    },
)


def controller_to_journal(record: ControllerRecord) -> JournalRecord:
    """Write one record."""
    version = record.version
    match record:
        case ClusterRecord():
            cluster = journal.ClusterRecord(
                cluster_id=record.cluster_id, version=version, **asdict(record.layout)
            )
            return JournalRecord(cluster=cluster)
        case TopicRecord():
            topic = journal.TopicRecord(version=version, topic=topic_to_journal(record.topic))
            return JournalRecord(topic=topic)
        case InternalPartitionRecord():
            internal = journal.InternalPartitionRecord(
                version=version, internal_partition=internal_to_journal(record.internal)
            )
            return JournalRecord(internal_partition=internal)
        case _:
            message = JournalRecord()
            _PLAIN.write(record, message)
            return message


def controller_from_journal(record: JournalRecord) -> ControllerRecord:
    """Read one of the controller's records."""
    match record.WhichOneof("record"):
        case "cluster":
            return ClusterRecord(
                version=record.cluster.version,
                cluster_id=record.cluster.cluster_id,
                layout=layout_from_journal(record.cluster),
            )
        case "topic":
            topic = topic_from_journal(record.topic.topic)
            return TopicRecord(version=record.topic.version, topic=topic)
        case "internal_partition":
            internal = internal_from_journal(record.internal_partition.internal_partition)
            return InternalPartitionRecord(
                version=record.internal_partition.version, internal=internal
            )
        case kind:
            plain = _PLAIN.read(kind, record)
    if plain is None:
        raise UnknownRecordError(f"{kind} is no record of the controller's")
    return plain
