"""The operations of the admin client, as its users call them."""

from aiosemel import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermission,
    HistoryFilter,
    OffsetSpec,
    PatternType,
    ResourceType,
    ServiceRole,
)
from untrusted.world import GROUP, PARTITION, TOPIC, Operation

_RULE = AclBinding(
    resource_type=ResourceType.TOPIC,
    resource_name=TOPIC,
    pattern_type=PatternType.LITERAL,
    principal="User:a",
    operation=AclOperation.READ,
    permission=AclPermission.ALLOW,
)

ADMIN_OPERATIONS: dict[str, Operation] = {
    "Admin.create_topic": lambda w: w.client.admin().create_topic(
        f"t-{w.number % 50}", partitions=1, exist_ok=True
    ),
    "Admin.delete_topic": lambda w: w.client.admin().delete_topic(
        f"t-{w.number % 50}", missing_ok=True
    ),
    "Admin.create_partitions": lambda w: w.client.admin().create_partitions(
        TOPIC, 4, validate_only=True
    ),
    "Admin.describe_configs": lambda w: w.client.admin().describe_configs(TOPIC),
    "Admin.incremental_alter_configs": lambda w: w.client.admin().incremental_alter_configs(
        TOPIC, set_configs={"retention.ms": 99_999_999}
    ),
    "Admin.list_topics": lambda w: w.client.admin().list_topics(),
    "Admin.describe_topic": lambda w: w.client.admin().describe_topic(TOPIC),
    "Admin.describe_topics": lambda w: w.client.admin().describe_topics([TOPIC, "none"]),
    "Admin.list_offsets": lambda w: w.client.admin().list_offsets(
        {PARTITION: OffsetSpec.LATEST, (TOPIC, 1): 7}
    ),
    "Admin.wait_for_records": lambda w: w.client.admin().wait_for_records(
        {PARTITION: 10_000}, max_wait_ms=50
    ),
    "Admin.count_records": lambda w: w.client.admin().count_records({PARTITION: 0}),
    "Admin.measure_lag": lambda w: w.client.admin().measure_lag({PARTITION: 0}),
    "Admin.delete_records": lambda w: w.client.admin().delete_records(
        {PARTITION: 1}, validate_only=True
    ),
    "Admin.describe_cluster": lambda w: w.client.admin().describe_cluster(),
    "Admin.list_groups": lambda w: w.client.admin().list_groups(),
    "Admin.describe_group": lambda w: w.client.admin().describe_group(GROUP),
    "Admin.list_consumer_group_offsets": (
        lambda w: w.client.admin().list_consumer_group_offsets(GROUP)
    ),
    "Admin.list_transactions": lambda w: w.client.admin().list_transactions(),
    "Admin.transaction_history": lambda w: w.client.admin().transaction_history(
        HistoryFilter(topic=TOPIC, transactional_id_prefix="t"), limit=3
    ),
    "Operators.list_audit": lambda w: w.client.admin().operators.list_audit(limit=3),
    "Operators.explain_reader": lambda w: w.client.admin().operators.explain_reader(
        GROUP, PARTITION
    ),
    "Admin.describe_transactions": lambda w: w.client.admin().describe_transactions("txn-1"),
    "Admin.get_transaction_outcome": (
        lambda w: w.client.admin().get_transaction_outcome("txn-1", 1)
    ),
    "Admin.list_prepared_transactions": (lambda w: w.client.admin().list_prepared_transactions()),
    "GroupAdmin.alter_offsets": lambda w: w.client.admin().groups.alter_offsets(
        GROUP, {PARTITION: 1}
    ),
    "GroupAdmin.reset_offsets": lambda w: w.client.admin().groups.reset_offsets(
        GROUP, OffsetSpec.EARLIEST
    ),
    "GroupAdmin.delete_offsets": lambda w: w.client.admin().groups.delete_offsets(
        GROUP, [PARTITION]
    ),
    "GroupAdmin.delete": lambda w: w.client.admin().groups.delete(GROUP, missing_ok=True),
    "AccessAdmin.create_acls": lambda w: w.client.admin().access.create_acls([_RULE]),
    "AccessAdmin.describe_acls": lambda w: w.client.admin().access.describe_acls(),
    "AccessAdmin.delete_acls": lambda w: w.client.admin().access.delete_acls(
        [AclBindingFilter(principal="User:a")]
    ),
    "AccessAdmin.alter_client_quotas": lambda w: w.client.admin().access.alter_client_quotas(
        "a", set_limits={"request_rate": 1_000_000}
    ),
    "AccessAdmin.describe_client_quotas": (
        lambda w: w.client.admin().access.describe_client_quotas()
    ),
    "MoveAdmin.alter_partition_reassignments": (
        lambda w: w.client.admin().moves.alter_partition_reassignments(
            {PARTITION: 0}, validate_only=True
        )
    ),
    "MoveAdmin.list_partition_reassignments": (
        lambda w: w.client.admin().moves.list_partition_reassignments()
    ),
    "MoveAdmin.wait_for_reassignments": (
        lambda w: w.client.admin().moves.wait_for_reassignments([PARTITION])
    ),
    "MoveAdmin.rebalance_partitions": (
        lambda w: w.client.admin().moves.rebalance_partitions(validate_only=True)
    ),
    "MoveAdmin.decommission_instance": (
        lambda w: w.client.admin().moves.decommission_instance(ServiceRole.BROKER, 0, undo=True)
    ),
    "Operators.list_open_transactions": (
        lambda w: w.client.admin().operators.list_open_transactions()
    ),
    "Operators.abort_transaction": lambda w: w.client.admin().operators.abort_transaction(
        "txn-1", 1, 0, operator="me", reason="a test", dry_run=True
    ),
    "Operators.fence_producer": lambda w: w.client.admin().operators.fence_producer(
        "txn-1", operator="me", reason="a test", dry_run=True
    ),
    "Operators.describe_producers": (
        lambda w: w.client.admin().operators.describe_producers(PARTITION)
    ),
    "Operators.describe_writes": lambda w: w.client.admin().operators.describe_writes(
        [PARTITION], producer_id=1, producer_epoch=0, from_time_ms=0
    ),
}
