"""The name of a joint transaction in requests; each error names the field and its value."""

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_coordinator.transactions.machine import JointName, TransactionLimits
from semel_coordinator.transactions.rpc import request_fields
from semel_runtime.server.form_checks import require_int, require_name


def joint_name(message: wire.JointTransaction, limits: TransactionLimits) -> JointName:
    """Read the name of a joint transaction."""
    length_max = limits.joint_name_length_max
    return JointName(
        transactional_id=request_fields.transactional_id(message.transactional_id, limits),
        txn_version=require_int("transaction.txn_version", message.txn_version),
        owner=require_name("transaction.owner", message.owner, length_max=length_max),
        run=require_name("transaction.run", message.run, length_max=length_max),
    )
