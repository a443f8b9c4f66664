"""The transaction-log partition of a record, for records that make a state."""

from functools import lru_cache

from semel_common import ids
from semel_common.ids import transaction_log_partition_of
from semel_coordinator.transactions.machine.joint.joint_entities import (
    JointEndsKept,
    JointId,
    JointKeptAlive,
    JointPoolGrown,
    JointWritersJoined,
)
from semel_coordinator.transactions.machine.state.entities import (
    DecidedTransaction,
    PreparedTransaction,
    Producer,
    TransactionalId,
)
from semel_coordinator.transactions.machine.state.records import (
    CoordinatorEpoch,
    EndedTransactionsKept,
    ParticipantsAdded,
    ProducerIdsGiven,
    TransactionsRecord,
)

partition_for_id = lru_cache(maxsize=1 << 16)(ids.partition_for_id)
"""Every request for a transactional id asks for its partition."""


def partition_of(record: TransactionsRecord, *, partition_count: int) -> int | None:
    """Return the partition of a record; None of one that is in no snapshot but its own journal's.

    Ids of joint transactions may have no producer id yet, so their names say it.
    """
    match record:
        case CoordinatorEpoch() | ProducerIdsGiven() | EndedTransactionsKept():
            return record.partition
        case (
            TransactionalId()
            | PreparedTransaction()
            | DecidedTransaction()
            | Producer()
            | ParticipantsAdded()
        ):
            return transaction_log_partition_of(record.producer_id)
        case (
            JointId() | JointEndsKept() | JointPoolGrown() | JointWritersJoined() | JointKeptAlive()
        ):
            return partition_for_id(record.transactional_id, partition_count)
        case _:
            return None
