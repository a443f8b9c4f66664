"""The transaction coordinator's records as protobuf, in the journal.

A table has the plain records. Other records are assigned field by field to a message that is there
already: nothing is built twice.
"""

from collections.abc import Iterable

from semel.coordinator.journal.v1 import transactions_pb2 as journal
from semel_common.ids import GroupId, Participant, TopicPartition
from semel_coordinator.transactions.journal import history_serde as history
from semel_coordinator.transactions.journal import joint_serde as joint
from semel_coordinator.transactions.machine import (
    AbortReason,
    Client,
    CoordinatorEpoch,
    DecidedTransaction,
    EndedTransactionsKept,
    JointEndsKept,
    JointId,
    JointIdExpired,
    JointKeptAlive,
    JointPoolGrown,
    JointPoolShrunk,
    JointWritersJoined,
    Operator,
    Outcome,
    ParticipantsAdded,
    PreparedTransaction,
    Producer,
    ProducerIdsGiven,
    TransactionalId,
    TransactionalIdExpired,
    TransactionCompleted,
    TransactionLogForgotten,
    TransactionLogHandedOver,
    TransactionLogServed,
    TransactionLogTakenOver,
    TransactionsRecord,
    TransactionState,
    in_order,
)
from semel_coordinator.transactions.machine.history.audit_trail import AuditNoted
from semel_coordinator.transactions.machine.state.entities import CompletedEpoch
from semel_runtime.journal.plain_records import PlainRecords
from semel_runtime.machine import UnknownRecordError

_REASON_TO_JOURNAL: dict[AbortReason | None, journal.AbortReason.ValueType] = {
    None: journal.ABORT_REASON_UNSPECIFIED,
    AbortReason.CLIENT: journal.ABORT_REASON_CLIENT,
    AbortReason.TIMED_OUT: journal.ABORT_REASON_TIMED_OUT,
    AbortReason.FENCED: journal.ABORT_REASON_FENCED,
    AbortReason.OPERATOR: journal.ABORT_REASON_OPERATOR,
}
_REASON_FROM_JOURNAL = {number: reason for reason, number in _REASON_TO_JOURNAL.items()}

_OUTCOME_TO_JOURNAL = {
    Outcome.COMMITTED: journal.OUTCOME_COMMITTED,
    Outcome.ABORTED: journal.OUTCOME_ABORTED,
}
_OUTCOME_FROM_JOURNAL = {number: outcome for outcome, number in _OUTCOME_TO_JOURNAL.items()}

_OUTCOME = {
    TransactionState.PREPARE_COMMIT: journal.OUTCOME_COMMITTED,
    TransactionState.PREPARE_ABORT: journal.OUTCOME_ABORTED,
    TransactionState.COMPLETE_COMMIT: journal.OUTCOME_COMMITTED,
    TransactionState.COMPLETE_ABORT: journal.OUTCOME_ABORTED,
}
_DECIDED_STATE = {
    journal.OUTCOME_COMMITTED: TransactionState.PREPARE_COMMIT,
    journal.OUTCOME_ABORTED: TransactionState.PREPARE_ABORT,
}
_COMPLETE_STATE = {
    journal.OUTCOME_COMMITTED: TransactionState.COMPLETE_COMMIT,
    journal.OUTCOME_ABORTED: TransactionState.COMPLETE_ABORT,
}


_PLAIN = PlainRecords[TransactionsRecord](
    journal.TransactionsRecord.DESCRIPTOR,
    {
        "transactional_id": TransactionalId,
        "transactional_id_expired": TransactionalIdExpired,
        "producer_ids_given": ProducerIdsGiven,
        "coordinator_epoch": CoordinatorEpoch,
        "handed_over": TransactionLogHandedOver,
        "taken_over": TransactionLogTakenOver,
        "served": TransactionLogServed,
        "forgotten": TransactionLogForgotten,
    },
)


def write(record: TransactionsRecord, out: journal.TransactionsRecord) -> None:
    """Fill an empty message with a record."""
    match record:
        case ParticipantsAdded():
            _write_participants_added(record, out.participants_added)
        case DecidedTransaction():
            _write_decided(record, out.decided_transaction)
        case PreparedTransaction():
            _write_prepared(record, out.prepared_transaction)
        case Producer():
            _write_producer(record, out.producer)
        case TransactionCompleted():
            completed = out.transaction_completed
            completed.producer_id = record.producer_id
            completed.producer_epoch = record.producer_epoch
            completed.outcome = _OUTCOME[record.state]
            completed.completed_ms = record.completed_ms
            if record.acknowledged_before_ms:
                completed.acknowledged_before_ms.extend(record.acknowledged_before_ms)
        case EndedTransactionsKept() | AuditNoted():
            history.write(record, out)
        case (
            JointId()
            | JointEndsKept()
            | JointPoolGrown()
            | JointPoolShrunk()
            | JointIdExpired()
            | JointWritersJoined()
            | JointKeptAlive()
        ):
            joint.write(record, out.joint)
        case _:
            _PLAIN.write(record, out)


def read(message: journal.TransactionsRecord) -> TransactionsRecord:
    """Read what `write` of this or any earlier release wrote."""
    match message.WhichOneof("record"):
        case "participants_added":
            return _read_participants_added(message.participants_added)
        case "decided_transaction":
            return _read_decided(message.decided_transaction)
        case "prepared_transaction":
            return _read_prepared(message.prepared_transaction)
        case "producer":
            return _read_producer(message.producer)
        case "transaction_completed":
            completed = message.transaction_completed
            return TransactionCompleted(
                producer_id=completed.producer_id,
                producer_epoch=completed.producer_epoch,
                state=_COMPLETE_STATE[completed.outcome],
                completed_ms=completed.completed_ms,
                acknowledged_before_ms=tuple(completed.acknowledged_before_ms),
            )
        case "joint":
            return joint.read(message.joint)
        case kind:
            record = history.read(message) or _PLAIN.read(kind, message)
    if record is None:
        raise UnknownRecordError("a record of a kind that this release does not know")
    return record


def _write_producer(record: Producer, out: journal.ProducerRecord) -> None:
    out.producer_id = record.producer_id
    out.transactional_id = record.transactional_id
    out.producer_epoch = record.producer_epoch
    out.outcomes = record.outcomes.to_bytes((record.outcomes.bit_length() + 7) // 8, "little")
    out.outcomes_known = record.outcomes_known
    out.abort_reason = _REASON_TO_JOURNAL[record.abort_reason]
    out.last_update_ms = record.last_update_ms
    out.abort_reasons = record.abort_reasons.to_bytes(
        (record.abort_reasons.bit_length() + 7) // 8, "little"
    )
    out.prepared.extend(record.prepared)
    for producer_epoch, outcome in record.completed:
        out.completed.append(producer_epoch)
        out.completed_outcomes.append(_OUTCOME_TO_JOURNAL[outcome])


def _read_producer(message: journal.ProducerRecord) -> Producer:
    return Producer(
        producer_id=message.producer_id,
        transactional_id=message.transactional_id,
        producer_epoch=message.producer_epoch,
        outcomes=int.from_bytes(message.outcomes, "little"),
        outcomes_known=message.outcomes_known,
        abort_reason=_REASON_FROM_JOURNAL[message.abort_reason],
        last_update_ms=message.last_update_ms,
        abort_reasons=int.from_bytes(message.abort_reasons, "little"),
        prepared=tuple(message.prepared),
        completed=tuple(
            CompletedEpoch(producer_epoch, _OUTCOME_FROM_JOURNAL[outcome])
            for producer_epoch, outcome in zip(
                message.completed, message.completed_outcomes, strict=True
            )
        ),
    )


def _write_participants_added(
    record: ParticipantsAdded, out: journal.ParticipantsAddedRecord
) -> None:
    out.producer_id = record.producer_id
    out.producer_epoch = record.producer_epoch
    out.start_ms = record.start_ms
    out.traceparent = record.traceparent
    _write_participants(record.participants, out.participants)


def _read_participants_added(message: journal.ParticipantsAddedRecord) -> ParticipantsAdded:
    return ParticipantsAdded(
        producer_id=message.producer_id,
        producer_epoch=message.producer_epoch,
        start_ms=message.start_ms,
        traceparent=message.traceparent,
        participants=tuple(_read_participants(message.participants)),
    )


def _write_decided(record: DecidedTransaction, out: journal.DecidedTransactionRecord) -> None:
    out.producer_id = record.producer_id
    out.producer_epoch = record.producer_epoch
    out.outcome = _OUTCOME[record.state]
    out.start_ms = record.start_ms
    _write_participants(record.committing, out.committing)
    _write_participants(record.aborting, out.aborting)
    out.reason = _REASON_TO_JOURNAL[record.reason]
    out.traceparent = record.traceparent
    out.decided_ms = record.decided_ms
    if record.prepared_ms:
        out.prepared_ms = record.prepared_ms
    if record.operator is not None:
        name, words, principal, address = record.operator
        out.operator.name, out.operator.words = name, words
        out.operator.principal, out.operator.address = principal, address
    if record.client is not None:
        _write_client(record.client, out.client)
    if record.txn_version is not None:
        out.txn_version = record.txn_version


def _read_decided(message: journal.DecidedTransactionRecord) -> DecidedTransaction:
    return DecidedTransaction(
        producer_id=message.producer_id,
        producer_epoch=message.producer_epoch,
        state=_DECIDED_STATE[message.outcome],
        start_ms=message.start_ms,
        committing=in_order(_read_participants(message.committing)),
        aborting=in_order(_read_participants(message.aborting)),
        reason=_REASON_FROM_JOURNAL[message.reason],
        traceparent=message.traceparent,
        decided_ms=message.decided_ms,
        prepared_ms=message.prepared_ms,
        operator=_read_operator(message.operator) if message.HasField("operator") else None,
        client=_read_client(message.client) if message.HasField("client") else None,
        txn_version=message.txn_version if message.HasField("txn_version") else None,
    )


def _write_prepared(record: PreparedTransaction, out: journal.PreparedTransactionRecord) -> None:
    out.producer_id = record.producer_id
    out.producer_epoch = record.producer_epoch
    out.start_ms = record.start_ms
    out.prepared_ms = record.prepared_ms
    _write_participants(record.committing, out.committing)
    _write_participants(record.aborting, out.aborting)
    out.traceparent = record.traceparent
    if record.client is not None:
        _write_client(record.client, out.client)


def _read_prepared(message: journal.PreparedTransactionRecord) -> PreparedTransaction:
    return PreparedTransaction(
        producer_id=message.producer_id,
        producer_epoch=message.producer_epoch,
        start_ms=message.start_ms,
        prepared_ms=message.prepared_ms,
        committing=in_order(_read_participants(message.committing)),
        aborting=in_order(_read_participants(message.aborting)),
        traceparent=message.traceparent,
        client=_read_client(message.client) if message.HasField("client") else None,
    )


def _write_client(client: Client, out: journal.ClientRecord) -> None:
    out.name, out.address, out.principal = client


def _read_client(message: journal.ClientRecord) -> Client:
    return Client(message.name, message.address, message.principal)


def _read_operator(message: journal.OperatorRecord) -> Operator:
    return Operator(message.name, message.words, message.principal, message.address)


def _write_participants(participants: Iterable[Participant], out: journal.ParticipantList) -> None:
    """Write participants in runs of one topic, or of groups: their order stays."""
    run: journal.ParticipantRun | None = None
    run_of = ""
    for participant in participants:
        topic_id = "" if isinstance(participant, GroupId) else participant.topic_id
        if run is None or topic_id != run_of:
            run, run_of = out.runs.add(topic_id=topic_id), topic_id
        if isinstance(participant, GroupId):
            run.group_ids.append(participant.group_id)
        else:
            run.partitions.append(participant.partition)


def _read_participants(message: journal.ParticipantList) -> Iterable[Participant]:
    for run in message.runs:
        for group_id in run.group_ids:
            yield GroupId(group_id)
        for partition in run.partitions:
            yield TopicPartition(run.topic_id, partition)
