"""The records of joint transactions as protobuf, in the journal; a table has the plain ones."""

from msgspec.structs import replace

from semel.coordinator.journal.v1 import transactions_pb2 as journal
from semel_coordinator.transactions.machine import (
    AbortedWriter,
    JointEnd,
    JointEndsKept,
    JointId,
    JointIdExpired,
    JointKeptAlive,
    JointPoolGrown,
    JointPoolShrunk,
    JointRecord,
    JointWritersJoined,
    Outcome,
)
from semel_runtime.journal.plain_records import PlainRecords
from semel_runtime.machine import UnknownRecordError

OUTCOMES = {
    Outcome.COMMITTED: journal.OUTCOME_COMMITTED,
    Outcome.ABORTED: journal.OUTCOME_ABORTED,
}
OUTCOMES_BACK = {number: outcome for outcome, number in OUTCOMES.items()}


_PLAIN = PlainRecords[JointRecord](
    journal.JointRecord.DESCRIPTOR,
    {
        "pool_grown": JointPoolGrown,
        "pool_shrunk": JointPoolShrunk,
        "id_expired": JointIdExpired,
        "writers_joined": JointWritersJoined,
        "kept_alive": JointKeptAlive,
    },
)


def write(record: JointRecord, out: journal.JointRecord) -> None:
    """Fill an empty message with a record."""
    match record:
        case JointId():
            _write_id(record, out.id)
        case JointEndsKept():
            out.ends_kept.transactional_id = record.transactional_id
            for end in record.ends:
                _write_end(end, out.ends_kept.ends.add())
            for writer in record.aborted:
                out.ends_kept.aborted.add(txn_version=writer.txn_version, writer=writer.writer)
        case _:
            _PLAIN.write(record, out)


def read(message: journal.JointRecord) -> JointRecord:
    """Read what `write` of this or any earlier release wrote."""
    match message.WhichOneof("record"):
        case "id":
            return _read_id(message.id)
        case "ends_kept":
            kept = message.ends_kept
            return JointEndsKept(
                transactional_id=kept.transactional_id,
                ends=tuple(map(_read_end, kept.ends)),
                aborted=tuple(
                    AbortedWriter(each.txn_version, each.writer) for each in kept.aborted
                ),
            )
        case kind:
            record = _PLAIN.read(kind, message)
    if record is None:
        raise UnknownRecordError("a record of a kind that this release does not know")
    return record


def _read_id(message: journal.JointIdRecord) -> JointId:
    return JointId(
        transactional_id=message.transactional_id,
        owner=message.owner,
        run=message.run,
        superseded=tuple(message.superseded),
        timeout_ms=message.timeout_ms,
        committed_version=message.committed_version,
        open_version=message.open_version,
        start_ms=message.start_ms,
        last_end=_read_last_end(message),
        last_update_ms=message.last_update_ms,
        one_shot=message.one_shot,
        principal=message.principal,
    )


def _write_id(record: JointId, out: journal.JointIdRecord) -> None:
    out.transactional_id = record.transactional_id
    out.owner = record.owner
    out.run = record.run
    out.superseded.extend(record.superseded)
    out.timeout_ms = record.timeout_ms
    out.committed_version = record.committed_version
    out.open_version = record.open_version
    out.start_ms = record.start_ms
    if record.last_end is not None:
        _write_end(record.last_end, out.last_end)
    out.last_update_ms = record.last_update_ms
    out.one_shot = record.one_shot
    out.principal = record.principal


def _write_end(end: JointEnd, out: journal.JointEndRecord) -> None:
    out.end_id = end.end_id
    out.owner = end.owner
    out.run = end.run
    out.txn_version = end.txn_version
    out.outcome = OUTCOMES[end.outcome]
    out.already_committed = end.already_committed


def _read_last_end(message: journal.JointIdRecord) -> JointEnd | None:
    """Read the last decision; of a release that wrote no owner, it is that of the id's."""
    if not message.HasField("last_end"):
        return None
    end = _read_end(message.last_end)
    return end if end.owner else replace(end, owner=message.owner)


def _read_end(message: journal.JointEndRecord) -> JointEnd:
    return JointEnd(
        end_id=message.end_id,
        owner=message.owner,
        run=message.run,
        txn_version=message.txn_version,
        outcome=OUTCOMES_BACK[message.outcome],
        already_committed=message.already_committed,
    )
