"""What each RPC does while the disk of an instance is below ``disk_reserve_bytes``.

The reserve is for calls that end transactions, register instances, keep members in their groups
and delete data; none of them may wait until an operator has enlarged a volume. New data of users
are refused with THROTTLING_QUOTA_EXCEEDED: nothing was stored, so clients repeat such a call. The
handlers pass ``may_use`` to the runner, and a test holds them against this table.
"""

from enum import StrEnum

from semel_common.wire import methods


class BelowReserve(StrEnum):
    """What an instance does with a call while its disk is below the reserve."""

    REFUSED = "refused"
    """The call stores new data of users."""
    WITHIN_HALF = "within half of the reserve"
    """The call stores offsets of readers, which go on until half of the reserve is used."""
    WITHIN_RESERVE = "within the reserve"
    """The call stores little, and other work waits for it."""
    READS = "reads"
    """The call stores nothing."""


_REFUSED = (
    methods.CREATE_TOPICS,
    methods.CREATE_PARTITIONS,
    methods.PRODUCE,
)
_WITHIN_HALF = (
    methods.COMMIT_OFFSETS,
    methods.TXN_OFFSET_COMMIT,
)
_WITHIN_RESERVE = (
    # What begins and ends transactions: data of theirs are on other disks, and readers wait.
    methods.INIT_PRODUCER_ID,
    methods.ADD_PARTITIONS_TO_TXN,
    methods.ADD_OFFSETS_TO_TXN,
    methods.END_TXN,
    methods.PREPARE_TXN,
    methods.COMPLETE_PREPARED_TXN,
    methods.JOIN_TXN,
    methods.KEEP_ALIVE_TXN,
    methods.END_JOINT_TXN,
    methods.ABORT_TRANSACTION,
    methods.FENCE_PRODUCER,
    methods.NOTE_AUDIT,
    methods.INQUIRE_TRANSACTIONS,
    methods.BROKER_WRITE_TXN_MARKERS,
    methods.GROUP_WRITE_TXN_MARKERS,
    # What keeps a cluster together.
    methods.REGISTER_INSTANCE,
    methods.CONSUMER_GROUP_HEARTBEAT,
    methods.HAND_OVER_TRANSACTIONS,
    methods.HAND_OVER_GROUPS,
    methods.HAND_OVER_LOG,
    methods.ALTER_PARTITION_REASSIGNMENTS,
    methods.REBALANCE_PARTITIONS,
    methods.DECOMMISSION_INSTANCE,
    methods.COMPLETE_PARTITION_REASSIGNMENT,
    # What makes room, or protects what there is.
    methods.DELETE_TOPICS,
    methods.DELETE_RECORDS,
    methods.DELETE_OFFSETS,
    methods.DELETE_GROUPS,
    methods.INCREMENTAL_ALTER_CONFIGS,
    methods.CREATE_ACLS,
    methods.DELETE_ACLS,
    methods.ALTER_CLIENT_QUOTAS,
)
_READS = (
    methods.METADATA,
    methods.FIND_COORDINATOR,
    methods.DESCRIBE_CLUSTER,
    methods.DESCRIBE_CONFIGS,
    methods.DESCRIBE_ACLS,
    methods.DESCRIBE_CLIENT_QUOTAS,
    methods.DESCRIBE_TRANSACTIONS,
    methods.LIST_TRANSACTIONS,
    methods.LIST_TRANSACTION_HISTORY,
    methods.LIST_AUDIT,
    methods.GET_TRANSACTION_OUTCOME,
    methods.FETCH,
    methods.LIST_OFFSETS,
    methods.COUNT_RECORDS,
    methods.DESCRIBE_PRODUCERS,
    methods.DESCRIBE_WRITES,
    methods.COPY_LOG,
    methods.FETCH_OFFSETS,
    methods.LIST_GROUPS,
    methods.DESCRIBE_GROUPS,
    methods.LIST_OPEN_TRANSACTIONS,
    methods.OPEN_FRAMES,
)

BELOW_RESERVE: dict[str, BelowReserve] = {
    **{each.path: BelowReserve.REFUSED for each in _REFUSED},
    **{each.path: BelowReserve.WITHIN_HALF for each in _WITHIN_HALF},
    **{each.path: BelowReserve.WITHIN_RESERVE for each in _WITHIN_RESERVE},
    **{each.path: BelowReserve.READS for each in _READS},
}
"""By the path of the unary call."""
