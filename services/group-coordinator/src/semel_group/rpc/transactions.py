"""Transactions as requests name them: by producer id and epoch."""

from semel_group.machine.values import Transaction
from semel_runtime.server.form_checks import INT64_MAX, require_int


def transaction(producer_id: int, producer_epoch: int) -> Transaction:
    """Return a transaction. Raises InvalidRequestError."""
    return Transaction(
        require_int("producer_id", producer_id, minimum=1),
        require_int("producer_epoch", producer_epoch, maximum=INT64_MAX - 1),
    )
