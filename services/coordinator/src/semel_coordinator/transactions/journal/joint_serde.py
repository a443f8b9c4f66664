"""The records of joint transactions as protobuf, in the journal: all are plain."""

from msgspec.structs import replace

from semel.coordinator.journal.v1 import transactions_pb2 as journal
from semel_coordinator.transactions.machine import (
    JointEndsKept,
    JointId,
    JointIdExpired,
    JointKeptAlive,
    JointPoolGrown,
    JointPoolShrunk,
    JointRecord,
    JointWritersJoined,
)
from semel_runtime.journal.plain_records import PlainRecords
from semel_runtime.machine import UnknownRecordError

_PLAIN = PlainRecords[JointRecord](
    journal.JointRecord.DESCRIPTOR,
    {
        "id": JointId,
        "ends_kept": JointEndsKept,
        "pool_grown": JointPoolGrown,
        "pool_shrunk": JointPoolShrunk,
        "id_expired": JointIdExpired,
        "writers_joined": JointWritersJoined,
        "kept_alive": JointKeptAlive,
    },
)


def write(record: JointRecord, out: journal.JointRecord) -> None:
    """Fill an empty message with a record."""
    _PLAIN.write(record, out)


def read(message: journal.JointRecord) -> JointRecord:
    """Read what `write` of this or any earlier release wrote."""
    record = _PLAIN.read(message.WhichOneof("record"), message)
    if record is None:
        raise UnknownRecordError("a record of a kind that this release does not know")
    return _with_owner(record) if isinstance(record, JointId) else record


def _with_owner(record: JointId) -> JointId:
    """Name the owner of the last decision; of a release that wrote none, it is the id's."""
    end = record.last_end
    if end is None or end.owner:
        return record
    return replace(record, last_end=replace(end, owner=record.owner))
