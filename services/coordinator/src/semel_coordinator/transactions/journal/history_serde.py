"""The history of transactions and the audit as protobuf, in the journal.

Both stand beside a coordinator epoch: an older release takes that for the whole record.
"""

from semel.coordinator.journal.v1 import transactions_pb2 as journal
from semel_coordinator.transactions.machine import EndedTransactionsKept
from semel_coordinator.transactions.machine.history.audit_trail import AuditEntry, AuditNoted

_NO_PARTITION = -1
_AUDIT_FIELDS = AuditEntry.__struct_fields__


def write(record: EndedTransactionsKept | AuditNoted, out: journal.TransactionsRecord) -> None:
    """Fill an empty message with a record."""
    match record:
        case EndedTransactionsKept():
            out.coordinator_epoch.partition = record.partition
            out.coordinator_epoch.coordinator_epoch = record.coordinator_epoch
            out.ended.committed = record.committed
            out.ended.first_number = record.first_number
            out.ended.packed.extend(record.packed)
        case AuditNoted():
            out.coordinator_epoch.partition = _NO_PARTITION
            for entry in record.entries:
                out.audit.entries.add(**{name: getattr(entry, name) for name in _AUDIT_FIELDS})


def read(message: journal.TransactionsRecord) -> EndedTransactionsKept | AuditNoted | None:
    """Read what `write` of this or any earlier release wrote; None: it is an epoch alone."""
    if message.HasField("ended"):
        epoch, ended = message.coordinator_epoch, message.ended
        return EndedTransactionsKept(
            partition=epoch.partition,
            committed=ended.committed,
            first_number=ended.first_number,
            packed=tuple(ended.packed),
            coordinator_epoch=epoch.coordinator_epoch,
        )
    if message.HasField("audit"):
        return AuditNoted(
            entries=tuple(
                AuditEntry(**{name: getattr(entry, name) for name in _AUDIT_FIELDS})
                for entry in message.audit.entries
            )
        )
    return None
