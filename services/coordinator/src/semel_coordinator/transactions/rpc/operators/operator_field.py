"""The person in requests of operators."""

from semel.coordinator.v1 import outcomes_pb2 as wire
from semel_common.wire.messages.request_bounds import OPERATOR_LENGTH_MAX
from semel_coordinator.transactions.machine import Operator
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_name


def check_operator(operator: wire.Operator, call: Call, *, dry_run: bool) -> Operator:
    """Check that the operator gives a name and a reason, which the log and the history show."""
    if not dry_run or operator.name:
        require_name("operator.name", operator.name, length_max=OPERATOR_LENGTH_MAX)
    if not dry_run or operator.reason:
        require_name("operator.reason", operator.reason, length_max=OPERATOR_LENGTH_MAX)
    return operator_of(call, operator.name, operator.reason)


def operator_of(call: Call, name: str = "", words: str = "") -> Operator:
    """Return the caller as an operator."""
    return Operator(name, words, str(call.origin.principal), call.origin.address)
