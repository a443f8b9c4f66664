"""Fields that several requests share; each error names the field and its value."""

from semel.common.v1 import participants_pb2
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.telemetry import trace_context
from semel_coordinator.transactions.machine import TransactionKey, TransactionLimits, in_order
from semel_coordinator.transactions.machine.state.entities import ParticipantSet
from semel_coordinator.transactions.rpc.participant_messages import participants_from_wire
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import (
    require_count,
    require_int,
    require_known,
    require_name,
)

_WAITS = tuple(wire.WaitFor.values())
_RESULTS = (
    participants_pb2.TRANSACTION_RESULT_COMMIT,
    participants_pb2.TRANSACTION_RESULT_ABORT,
)


def transactional_id(value: str, limits: TransactionLimits) -> str:
    """Check a transactional id."""
    return require_name("transactional_id", value, length_max=limits.transactional_id_length_max)


def instance_id(value: str, limits: TransactionLimits) -> str:
    """Check a producer's instance id."""
    return require_name("instance_id", value, length_max=limits.instance_id_length_max)


def wait_for(value: int) -> int:
    """Check the wait's target."""
    return require_known("wait", value, _WAITS)


def is_commit(result: int) -> bool:
    """Check a transaction's result, and return whether it is a commit."""
    known = require_known("result", result, _RESULTS)
    return known == participants_pb2.TRANSACTION_RESULT_COMMIT


def key(
    producer_id: int, producer_epoch: int, epoch_field: str = "producer_epoch"
) -> TransactionKey:
    """Check a producer id and epoch."""
    return TransactionKey(
        require_int("producer_id", producer_id, minimum=1),
        require_int(epoch_field, producer_epoch),
    )


def participants(
    request: wire.EndTxnRequest | wire.PrepareTxnRequest,
    limits: TransactionLimits,
    *,
    commit: bool,
) -> ParticipantSet | None:
    """Read the participants of a transaction that ends or is prepared; None if not given.

    Of an abort, those over the limit are left out rather than refused: they will ask.
    """
    if not request.HasField("participants"):
        return None
    found = participants_from_wire("participants", request.participants, limits)
    if commit:
        require_count("participants", found, maximum=limits.participants_max)
    return in_order(found[: limits.participants_max])


def traceparent(call: Call) -> str:
    """Return the trace context if it is one, and is recorded: it is stored, and shown as a link."""
    return "" if trace_context.sampled(call.traceparent) is None else call.traceparent
