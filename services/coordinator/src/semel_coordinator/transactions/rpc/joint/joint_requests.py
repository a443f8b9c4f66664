"""Checks and reads requests about joint transactions; each error names the field and its value."""

from semel.common.v1 import participants_pb2
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import InvalidRequestError
from semel_coordinator.transactions.machine import (
    EndJointTxn,
    JointName,
    JoinTxn,
    TransactionKey,
    TransactionLimits,
    in_order,
)
from semel_coordinator.transactions.machine.state.entities import ParticipantSet
from semel_coordinator.transactions.rpc import requests
from semel_coordinator.transactions.rpc.participant_messages import participants_from_wire
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count, require_int, require_name


def name(message: wire.JointTransaction, limits: TransactionLimits) -> JointName:
    """Read the name of a joint transaction."""
    length_max = limits.joint_name_length_max
    return JointName(
        transactional_id=requests.transactional_id(message.transactional_id, limits),
        txn_version=require_int("transaction.txn_version", message.txn_version),
        owner=require_name("transaction.owner", message.owner, length_max=length_max),
        run=require_name("transaction.run", message.run, length_max=length_max),
    )


def join(request: wire.JoinTxnRequest, limits: TransactionLimits, principal: str) -> JoinTxn:
    """Read a JoinTxn; its timeout is the machine's to check."""
    return JoinTxn(
        name=name(request.transaction, limits),
        writer=require_name("writer", request.writer, length_max=limits.joint_name_length_max),
        timeout_ms=request.transaction_timeout_ms,
        reset=request.reset,
        one_shot=request.one_shot,
        principal=principal,
    )


def end(request: wire.EndJointTxnRequest, limits: TransactionLimits, call: Call) -> EndJointTxn:
    """Read an EndJointTxn."""
    commit = requests.result(request.result) == participants_pb2.TRANSACTION_RESULT_COMMIT
    require_count("writers", request.writers, maximum=limits.joint_writers_max)
    writers: dict[TransactionKey, ParticipantSet] = {}
    for index, each in enumerate(request.writers):
        field = f"writers[{index}]"
        key = TransactionKey(
            require_int(f"{field}.producer_id", each.producer_id, minimum=1),
            require_int(f"{field}.producer_epoch", each.producer_epoch),
        )
        if key in writers:
            raise InvalidRequestError(
                f"{field} is named twice: producer id {key.producer_id}", field=field
            )
        found = participants_from_wire(f"{field}.participants", each.participants, limits)
        require_count(f"{field}.participants", found, maximum=limits.participants_max)
        writers[key] = in_order(found)
    return EndJointTxn(
        name=name(request.transaction, limits),
        commit=commit,
        writers=writers,
        end_id=require_name("end_id", request.end_id, length_max=limits.joint_name_length_max),
        traceparent=requests.traceparent(call),
        principal=str(call.origin.principal),
    )
