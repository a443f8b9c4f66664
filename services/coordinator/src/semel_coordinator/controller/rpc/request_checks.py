"""Checks of form for every request of ClusterService: nothing unchecked goes further."""

from collections import Counter

from semel.coordinator.v1 import acls_pb2 as acls_wire
from semel.coordinator.v1 import cluster_pb2 as wire
from semel.coordinator.v1 import moves_pb2 as moves_wire
from semel.coordinator.v1 import quotas_pb2 as quotas_wire
from semel_common.errors import InvalidRequestError
from semel_common.wire.messages.request_bounds import (
    CLAIMS_MAX,
    FILTERS_MAX,
    FOLDER_LENGTH_MAX,
    HOST_LENGTH_MAX,
    ID_LENGTH_MAX,
    LISTENERS_MAX,
    NAMES_MAX,
    REASSIGNMENTS_MAX,
)
from semel_coordinator.controller.machine import Completion, InstanceKey, Registration
from semel_runtime.claims import ClaimHistory, JournalClaim, JournalMark
from semel_runtime.cluster.controller_note import mark_from_wire
from semel_runtime.cluster.metadata_image import Instance, Listener, ServiceRole
from semel_runtime.journal.contract import DiskShortage
from semel_runtime.server.form_checks import (
    INT32_MAX,
    INT64_MAX,
    require_count,
    require_int,
    require_known,
    require_name,
    shown,
)

MAX_WAIT_MS_MAX = 300_000
_PORT_MAX = 65_535
_COORDINATOR_TYPES = (wire.COORDINATOR_TYPE_GROUP, wire.COORDINATOR_TYPE_TRANSACTION)


def check_metadata(request: wire.MetadataRequest) -> None:
    """Check a Metadata request."""
    require_count("topics", request.topics, maximum=NAMES_MAX)
    require_count("topic_ids", request.topic_ids, maximum=NAMES_MAX)
    _require_ids("topic_ids", list(request.topic_ids))
    require_int("known_version", request.known_version, maximum=INT64_MAX)
    require_int("max_wait_ms", request.max_wait_ms, maximum=MAX_WAIT_MS_MAX)
    if request.from_controller and request.all_topics:
        raise InvalidRequestError(
            "from_controller and all_topics are both set: name the topics, or leave from_controller"
            " out",
            field="from_controller",
        )


def check_find_coordinator(request: wire.FindCoordinatorRequest) -> None:
    """Check a FindCoordinator request, except its keys, which are answered one by one."""
    require_known("type", request.type, _COORDINATOR_TYPES)
    require_count("keys", request.keys, minimum=1, maximum=NAMES_MAX)


def check_create_topics(request: wire.CreateTopicsRequest) -> None:
    """Check a CreateTopics request, except its topics, which are answered one by one."""
    require_count("topics", request.topics, minimum=1, maximum=NAMES_MAX)


def check_delete_topics(request: wire.DeleteTopicsRequest) -> None:
    """Check a DeleteTopics request."""
    require_count("topics", request.topics, maximum=NAMES_MAX)
    require_count("topic_ids", request.topic_ids, maximum=NAMES_MAX)
    _require_ids("topic_ids", list(request.topic_ids))
    if not request.topics and not request.topic_ids:
        raise InvalidRequestError("topics and topic_ids are both empty", field="topics")


def check_describe_configs(request: wire.DescribeConfigsRequest) -> None:
    """Check a DescribeConfigs request, except its topics, which are answered one by one."""
    require_count("topics", request.topics, minimum=1, maximum=NAMES_MAX)
    require_count("keys", request.keys, maximum=NAMES_MAX)


def check_create_acls(request: acls_wire.CreateAclsRequest) -> None:
    """Check a CreateAcls request, except the contents of its rules."""
    require_count("acls", request.acls, minimum=1, maximum=NAMES_MAX)


def check_delete_acls(request: acls_wire.DeleteAclsRequest) -> None:
    """Check a DeleteAcls request."""
    require_count("filters", request.filters, minimum=1, maximum=FILTERS_MAX)


def check_alter_client_quotas(request: quotas_wire.AlterClientQuotasRequest) -> None:
    """Check an AlterClientQuotas request, except the limits."""
    require_count("changes", request.changes, minimum=1, maximum=NAMES_MAX)
    _require_users([change.user for change in request.changes])
    for change in request.changes:
        require_count("changes.remove", change.remove, maximum=NAMES_MAX)


def check_describe_client_quotas(request: quotas_wire.DescribeClientQuotasRequest) -> None:
    """Check a DescribeClientQuotas request."""
    require_count("users", request.users, maximum=NAMES_MAX)
    _require_users(list(request.users))


def _require_users(users: list[str]) -> None:
    for user in users:
        if user:
            require_name("user", user)


def check_alter_configs(request: wire.IncrementalAlterConfigsRequest) -> None:
    """Check an IncrementalAlterConfigs request, except its topics, answered one by one."""
    _require_topics_once([topic.name for topic in request.topics])


def check_create_partitions(request: wire.CreatePartitionsRequest) -> None:
    """Check a CreatePartitions request, except its topics, which are answered one by one."""
    _require_topics_once([topic.name for topic in request.topics])


def check_alter_partition_reassignments(
    request: moves_wire.AlterPartitionReassignmentsRequest,
) -> None:
    """Check an AlterPartitionReassignments request, except its partitions, answered one by one."""
    require_count("partitions", request.partitions, minimum=1, maximum=REASSIGNMENTS_MAX)
    named = Counter((each.topic, each.partition) for each in request.partitions)
    (topic, partition), count = named.most_common(1)[0]
    if count > 1:
        raise InvalidRequestError(
            f"partitions names {shown(topic)!r} {partition} {count} times", field="partitions"
        )


def read_decommissioned(request: wire.DecommissionInstanceRequest) -> InstanceKey:
    """Check a DecommissionInstance request, and return whom it names."""
    role = require_known("role", request.role, tuple(ServiceRole))
    instance_id = require_int("instance_id", request.instance_id, maximum=INT32_MAX)
    return InstanceKey(ServiceRole(role), instance_id)


def read_completion(request: moves_wire.CompletePartitionReassignmentRequest) -> Completion:
    """Check a CompletePartitionReassignment request, and return what it says."""
    return Completion(
        topic_id=require_name("topic_id", request.topic_id, length_max=ID_LENGTH_MAX),
        partition=require_int("partition", request.partition, maximum=INT32_MAX),
        leader_epoch=require_int("leader_epoch", request.leader_epoch, maximum=INT64_MAX - 1),
        broker_id=require_int("broker_id", request.broker_id, maximum=INT32_MAX),
    )


def read_registration(request: wire.RegisterInstanceRequest) -> Registration:
    """Check a RegisterInstance request, and return what it says."""
    role = require_known("role", request.role, tuple(ServiceRole))
    if request.cluster_id:
        require_name("cluster_id", request.cluster_id, length_max=ID_LENGTH_MAX)
    return Registration(
        instance=Instance(
            role=ServiceRole(role),
            instance_id=require_int("instance_id", request.instance_id, maximum=INT32_MAX),
            listeners=_read_listeners(list(request.listeners)),
        ),
        cluster_id=request.cluster_id,
        claim_epoch=require_int("claim_epoch", request.claim_epoch, minimum=1),
        claim_token=require_name("claim_token", request.claim_token, length_max=ID_LENGTH_MAX),
        journal_end_offset=require_int(
            "journal_end_offset", request.journal_end_offset, maximum=INT64_MAX
        ),
        history=_read_history(request),
        controller=_read_mark(request.controller) if request.HasField("controller") else None,
    )


def read_shortage(request: wire.RegisterInstanceRequest) -> DiskShortage | None:
    """Check what a RegisterInstance request says of the disk, and return it."""
    if not request.HasField("disk_shortage"):
        return None
    told = request.disk_shortage
    return DiskShortage(
        folder=require_name("disk_shortage.folder", told.folder, length_max=FOLDER_LENGTH_MAX),
        free_bytes=require_int("disk_shortage.free_bytes", told.free_bytes, maximum=INT64_MAX),
        queued_bytes=0,
        reserve_bytes=require_int(
            "disk_shortage.reserve_bytes", told.reserve_bytes, maximum=INT64_MAX
        ),
    )


def _read_history(request: wire.RegisterInstanceRequest) -> ClaimHistory | None:
    if not request.claims:
        return None
    require_count("claims", request.claims, maximum=CLAIMS_MAX)
    history = ClaimHistory(
        claims=tuple(
            JournalClaim(
                claim_epoch=claim.claim_epoch,
                claim_token=claim.claim_token,
                start_offset=claim.start_offset,
            )
            for claim in request.claims
        ),
        recovered_epoch=request.recovered_epoch,
    )
    if not history.is_in_order:
        raise InvalidRequestError("claims are not in the order of their epochs", field="claims")
    return history


def _read_mark(mark: wire.JournalMark) -> JournalMark:
    require_int("controller.claim_epoch", mark.claim_epoch, minimum=1, maximum=INT64_MAX)
    require_int("controller.end_offset", mark.end_offset, maximum=INT64_MAX)
    require_name("controller.claim_token", mark.claim_token, length_max=ID_LENGTH_MAX)
    return mark_from_wire(mark)


def _read_listeners(listeners: list[wire.AdvertisedListener]) -> tuple[Listener, ...]:
    require_count("listeners", listeners, minimum=1, maximum=LISTENERS_MAX)
    name, count = Counter(listener.name for listener in listeners).most_common(1)[0]
    if count > 1:
        raise InvalidRequestError(f"listeners names {name!r} {count} times", field="listeners")
    return tuple(_read_listener(listener) for listener in listeners)


def _read_listener(listener: wire.AdvertisedListener) -> Listener:
    host = require_name("listeners.host", listener.host, length_max=HOST_LENGTH_MAX)
    if not host.isprintable() or set(host) & set(" /,[]"):
        raise InvalidRequestError(f"listeners.host {host!r} is not a host", field="listeners.host")
    return Listener(
        name=require_name("listeners.name", listener.name, length_max=ID_LENGTH_MAX),
        host=host,
        port=require_int("listeners.port", listener.port, minimum=1, maximum=_PORT_MAX),
    )


def _require_topics_once(names: list[str]) -> None:
    require_count("topics", names, minimum=1, maximum=NAMES_MAX)
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InvalidRequestError(f"topics names {shown(name)!r} {count} times", field="topics")


def _require_ids(field: str, ids: list[str]) -> None:
    for identifier in ids:
        require_name(field, identifier, length_max=ID_LENGTH_MAX)
