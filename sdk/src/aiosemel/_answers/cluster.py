"""The answers of coordinators about the cluster: metadata, topics, rules, quotas and moves."""

import math
from collections.abc import Iterable

from aiosemel._answers.fields import (
    Unfit,
    at_least,
    distinct,
    host_and_port,
    identified,
    is_refused,
    moment,
    one_of,
    paired,
    same,
    topic_name,
    within,
)
from aiosemel._answers.registry import Checks
from semel.coordinator.v1 import acls_pb2 as acls
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.coordinator.v1 import moves_pb2 as moves
from semel.coordinator.v1 import quotas_pb2 as quotas
from semel_common.ids import TRANSACTION_LOG_PARTITIONS_MAX, InternalTopic
from semel_common.wire import methods

CHECKS = Checks()

_ROLES = frozenset(cluster.ServiceRole.values()) - {cluster.SERVICE_ROLE_UNSPECIFIED}
_INSTANCE_ID_MAX = (1 << 31) - 1
_GROUP_PARTITIONS_MAX = 1 << 20
"""A client goes through all of them to find who leads groups."""


@CHECKS.of(methods.METADATA)
def _metadata(request: cluster.MetadataRequest, answer: cluster.MetadataResponse) -> None:
    identified("cluster_id", answer.cluster_id)
    at_least("version", answer.version)
    _layout(answer.layout)
    for instance in answer.instances:
        _instance(instance)
    distinct("instances", ((each.role, each.instance_id) for each in answer.instances))
    for topic in answer.topics:
        _topic(topic)
    if not request.all_topics:
        _as_asked(request, answer)
    distinct("topics.name", (each.name for each in answer.topics if each.name))
    distinct("topics.topic_id", (each.topic_id for each in answer.topics if each.topic_id))
    for internal in answer.internal_partitions:
        _internal(internal, answer.layout)


def _as_asked(request: cluster.MetadataRequest, answer: cluster.MetadataResponse) -> None:
    """Check that each topic that was asked for is answered, and no other."""
    names, topic_ids = set(request.topics), set(request.topic_ids)
    for topic in answer.topics:
        if topic.name not in names and topic.topic_id not in topic_ids:
            raise Unfit("topics.name", topic.name, "was not asked for")
    missing = names.difference(topic.name for topic in answer.topics)
    if missing:
        raise Unfit("topics", min(missing), "was asked for, and is not answered")


def _topic(topic: cluster.Topic) -> None:
    if is_refused("topics", topic):
        return
    topic_name("topics.name", topic.name)
    identified("topics.topic_id", topic.topic_id)
    indexes = sorted(partition.index for partition in topic.partitions)
    if not indexes or indexes[0] != 0 or indexes[-1] != len(indexes) - 1:
        raise Unfit("partitions.index", indexes[:3], f"is not 0 and up in topic {topic.name}")
    distinct("partitions.index", indexes)
    for partition in topic.partitions:
        _partition(partition)


def _partition(partition: cluster.Partition) -> None:
    at_least("partitions.leader_id", partition.leader_id)
    at_least("partitions.leader_epoch", partition.leader_epoch)
    if partition.HasField("moving_to"):
        at_least("partitions.moving_to", partition.moving_to)


def _internal(internal: cluster.InternalPartition, layout: cluster.ClusterLayout) -> None:
    counts = {
        str(InternalTopic.CONSUMER_OFFSETS): layout.group_partitions,
        str(InternalTopic.TRANSACTION_STATE): layout.transaction_log_partitions,
    }
    one_of("internal_partitions.topic", internal.topic, counts)
    within("internal_partitions.index", internal.partition.index, 0, counts[internal.topic] - 1)
    _partition(internal.partition)


def _layout(layout: cluster.ClusterLayout) -> None:
    log_partitions = layout.transaction_log_partitions
    within("transaction_log_partitions", log_partitions, 1, TRANSACTION_LOG_PARTITIONS_MAX)
    within("group_partitions", layout.group_partitions, 1, _GROUP_PARTITIONS_MAX)
    within("coordinators", layout.coordinators, 1, _INSTANCE_ID_MAX)
    within("group_coordinators", layout.group_coordinators, 1, _INSTANCE_ID_MAX)


def _instance(instance: cluster.Instance) -> None:
    one_of("instances.role", instance.role, _ROLES)
    at_least("instances.instance_id", instance.instance_id)
    if instance.host:  # Without one, it has no listener of the name by which the client came.
        host_and_port("instances", instance.host, instance.port)


@CHECKS.of(methods.DESCRIBE_CLUSTER)
def _describe_cluster(
    request: cluster.DescribeClusterRequest, answer: cluster.DescribeClusterResponse
) -> None:
    del request  # It has nothing to say.
    identified("cluster_id", answer.cluster_id)
    at_least("version", answer.version)
    _layout(answer.layout)
    at_least("topic_count", answer.topic_count)
    at_least("partition_count", answer.partition_count)
    for instance in answer.instances:
        _instance(instance.instance)
        at_least("instances.claim_epoch", instance.claim_epoch)
        at_least("instances.leader_partitions", instance.leader_partitions)
        moment("instances.last_registered_ms", instance.last_registered_ms)
        at_least("instances.disk_shortage.free_bytes", instance.disk_shortage.free_bytes)
        at_least("instances.disk_shortage.reserve_bytes", instance.disk_shortage.reserve_bytes)


# -- topics --------------------------------------------------------------------------------------


@CHECKS.of(methods.CREATE_TOPICS)
def _create_topics(
    request: cluster.CreateTopicsRequest, answer: cluster.CreateTopicsResponse
) -> None:
    for asked, topic in paired("topics", request.topics, answer.topics):
        same("topics.name", topic.name, asked.name)
        if not is_refused("topics", topic):
            at_least("topics.partitions", topic.partitions, 1)


@CHECKS.of(methods.DELETE_TOPICS)
def _delete_topics(
    request: cluster.DeleteTopicsRequest, answer: cluster.DeleteTopicsResponse
) -> None:
    asked = [*request.topics, *request.topic_ids]
    for name, topic in paired("topics", asked, answer.topics):
        is_refused("topics", topic)
        if name not in (topic.name, topic.topic_id):
            same("topics.name", topic.name, name)


@CHECKS.of(methods.CREATE_PARTITIONS)
def _create_partitions(
    request: cluster.CreatePartitionsRequest, answer: cluster.CreatePartitionsResponse
) -> None:
    for asked, topic in paired("topics", request.topics, answer.topics):
        same("topics.name", topic.name, asked.name)
        if not is_refused("topics", topic):
            same("topics.partitions", topic.partitions, asked.partitions)


@CHECKS.of(methods.DESCRIBE_CONFIGS)
def _describe_configs(
    request: cluster.DescribeConfigsRequest, answer: cluster.DescribeConfigsResponse
) -> None:
    for asked, topic in paired("topics", request.topics, answer.topics):
        same("topics.name", topic.name, asked)
        if not is_refused("topics", topic):
            for entry in topic.entries:
                identified("entries.name", entry.name)
            distinct("entries.name", (entry.name for entry in topic.entries))


@CHECKS.of(methods.INCREMENTAL_ALTER_CONFIGS)
def _alter_configs(
    request: cluster.IncrementalAlterConfigsRequest,
    answer: cluster.IncrementalAlterConfigsResponse,
) -> None:
    for asked, topic in paired("topics", request.topics, answer.topics):
        same("topics.name", topic.name, asked.name)
        is_refused("topics", topic)


# -- access rules and quotas ---------------------------------------------------------------------


@CHECKS.of(methods.CREATE_ACLS)
def _create_acls(request: acls.CreateAclsRequest, answer: acls.CreateAclsResponse) -> None:
    _bindings("created", answer.created)
    asked = {acl.SerializeToString(deterministic=True) for acl in request.acls}
    for rule in answer.created:
        if rule.SerializeToString(deterministic=True) not in asked:
            raise Unfit("created.resource_name", rule.resource_name, "was not asked for")


@CHECKS.of(methods.DESCRIBE_ACLS)
def _describe_acls(request: acls.DescribeAclsRequest, answer: acls.DescribeAclsResponse) -> None:
    del request  # A filter: the service knows best what it matches.
    _bindings("acls", answer.acls)


@CHECKS.of(methods.DELETE_ACLS)
def _delete_acls(request: acls.DeleteAclsRequest, answer: acls.DeleteAclsResponse) -> None:
    del request  # Filters: the service knows best what they match.
    _bindings("deleted", answer.deleted)


def _bindings(field: str, bindings: Iterable[acls.AclBinding]) -> None:
    for binding in bindings:
        one_of(f"{field}.resource_type", binding.resource_type, _RESOURCE_TYPES)
        one_of(f"{field}.pattern_type", binding.pattern_type, _PATTERN_TYPES)
        one_of(f"{field}.operation", binding.operation, _OPERATIONS)
        one_of(f"{field}.permission", binding.permission, _PERMISSIONS)
        identified(f"{field}.resource_name", binding.resource_name)
        identified(f"{field}.principal", binding.principal)


_RESOURCE_TYPES = frozenset(acls.ResourceType.values()) - {acls.RESOURCE_TYPE_UNSPECIFIED}
_PATTERN_TYPES = frozenset({acls.PATTERN_TYPE_LITERAL, acls.PATTERN_TYPE_PREFIXED})
_OPERATIONS = frozenset(acls.AclOperation.values()) - {acls.ACL_OPERATION_UNSPECIFIED}
_PERMISSIONS = frozenset(acls.AclPermission.values()) - {acls.ACL_PERMISSION_UNSPECIFIED}


@CHECKS.of(methods.ALTER_CLIENT_QUOTAS)
def _alter_client_quotas(
    request: quotas.AlterClientQuotasRequest, answer: quotas.AlterClientQuotasResponse
) -> None:
    for change, quota in paired("client_quotas", request.changes, answer.client_quotas):
        same("client_quotas.user", quota.user, change.user)
    _quotas(answer.client_quotas)


@CHECKS.of(methods.DESCRIBE_CLIENT_QUOTAS)
def _describe_client_quotas(
    request: quotas.DescribeClientQuotasRequest, answer: quotas.DescribeClientQuotasResponse
) -> None:
    del request  # All users are asked for.
    _quotas(answer.client_quotas)


def _quotas(client_quotas: Iterable[quotas.ClientQuota]) -> None:
    users: list[str] = []
    for quota in client_quotas:
        users.append(quota.user)
        for name, limit in quota.limits.items():
            identified("limits.name", name)
            if not math.isfinite(limit) or limit < 0:
                raise Unfit(f"limits.{name}", limit, "is no limit")
    distinct("client_quotas.user", users)


# -- moves ---------------------------------------------------------------------------------------


@CHECKS.of(methods.ALTER_PARTITION_REASSIGNMENTS)
def _alter_reassignments(
    request: moves.AlterPartitionReassignmentsRequest,
    answer: moves.AlterPartitionReassignmentsResponse,
) -> None:
    for asked, result in paired("partitions", request.partitions, answer.partitions):
        same("partitions.topic", result.topic, asked.topic)
        same("partitions.partition", result.partition, asked.partition)
        _reassigned(result)


@CHECKS.of(methods.REBALANCE_PARTITIONS)
def _rebalance(
    request: moves.RebalancePartitionsRequest, answer: moves.RebalancePartitionsResponse
) -> None:
    del request  # It names nothing.
    for result in answer.partitions:
        topic_name("partitions.topic", result.topic)
        at_least("partitions.partition", result.partition)
        _reassigned(result)
    distinct(
        "partitions", ((partition.topic, partition.partition) for partition in answer.partitions)
    )


def _reassigned(result: moves.PartitionReassignmentResult) -> None:
    if not is_refused("partitions", result):
        at_least("partitions.leader_id", result.leader_id)
        if result.HasField("moving_to"):
            at_least("partitions.moving_to", result.moving_to)


@CHECKS.of(methods.DECOMMISSION_INSTANCE)
def _decommission(
    request: cluster.DecommissionInstanceRequest, answer: cluster.DecommissionInstanceResponse
) -> None:
    del request  # The instance is not repeated.
    at_least("leader_partitions", answer.leader_partitions)
