"""Access rules and client quotas as protobuf: on the wire and in journals."""

from collections.abc import Iterable
from enum import IntEnum
from typing import TypeVar

from semel.common.journal.v1 import cluster_pb2 as journal
from semel.coordinator.v1 import acls_pb2 as wire
from semel.coordinator.v1 import quotas_pb2 as quotas
from semel_common.errors import InvalidRequestError
from semel_runtime.access.acls import (
    ANY,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from semel_runtime.access.client_quotas import ClientQuota

E = TypeVar("E", bound=IntEnum)


def acls_from_wire(acls: Iterable[wire.AclBinding]) -> tuple[Acl, ...]:
    """Read rules. Raises InvalidRequestError for a number that means nothing."""
    return tuple(
        Acl(
            resource_type=_known("resource_type", ResourceType, acl.resource_type),
            resource_name=acl.resource_name,
            pattern_type=_known("pattern_type", PatternType, acl.pattern_type),
            principal=acl.principal,
            operation=_known("operation", Operation, acl.operation),
            permission=_known("permission", Permission, acl.permission),
        )
        for acl in acls
    )


def acls_to_wire(acls: Iterable[Acl]) -> list[wire.AclBinding]:
    """Write rules."""
    return [
        wire.AclBinding(
            resource_type=acl.resource_type.value,  # type: ignore[arg-type]  # equal numbers
            resource_name=acl.resource_name,
            pattern_type=acl.pattern_type.value,  # type: ignore[arg-type]  # equal numbers
            principal=acl.principal,
            operation=acl.operation.value,  # type: ignore[arg-type]  # equal numbers
            permission=acl.permission.value,  # type: ignore[arg-type]  # equal numbers
        )
        for acl in acls
    ]


def filter_from_wire(given: wire.AclFilter) -> AclFilter:
    """Read a filter. Raises InvalidRequestError for a number that means nothing."""
    for field, known, number in (
        ("resource_type", ResourceType, given.resource_type),
        ("pattern_type", PatternType, given.pattern_type),
        ("operation", Operation, given.operation),
        ("permission", Permission, given.permission),
    ):
        if number != ANY:
            _known(field, known, number)
    return AclFilter(
        resource_type=given.resource_type,
        resource_name=given.resource_name,
        pattern_type=given.pattern_type,
        principal=given.principal,
        operation=given.operation,
        permission=given.permission,
    )


def acl_to_journal(acl: Acl) -> journal.AclImage:
    """Write a rule for the journal."""
    return journal.AclImage(
        resource_type=acl.resource_type.value,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type.value,
        principal=acl.principal,
        operation=acl.operation.value,
        permission=acl.permission.value,
    )


def acl_from_journal(acl: journal.AclImage) -> Acl:
    """Read a rule from the journal."""
    return Acl(
        resource_type=ResourceType(acl.resource_type),
        resource_name=acl.resource_name,
        pattern_type=PatternType(acl.pattern_type),
        principal=acl.principal,
        operation=Operation(acl.operation),
        permission=Permission(acl.permission),
    )


def quotas_from_wire(given: Iterable[quotas.ClientQuota]) -> tuple[ClientQuota, ...]:
    """Read limits."""
    return tuple(
        ClientQuota(user=each.user, limits=tuple(sorted(each.limits.items()))) for each in given
    )


def quotas_to_wire(given: Iterable[ClientQuota]) -> list[quotas.ClientQuota]:
    """Write limits."""
    return [quotas.ClientQuota(user=each.user, limits=dict(each.limits)) for each in given]


def quota_to_journal(quota: ClientQuota) -> journal.ClientQuotaImage:
    """Write limits for the journal."""
    return journal.ClientQuotaImage(user=quota.user, limits=dict(quota.limits))


def quota_from_journal(quota: journal.ClientQuotaImage) -> ClientQuota:
    """Read limits from the journal."""
    return ClientQuota(user=quota.user, limits=tuple(sorted(quota.limits.items())))


def _known(field: str, known: type[E], number: int) -> E:
    try:
        return known(number)
    except ValueError:
        raise InvalidRequestError(f"{field} has the unknown value {number}", field=field) from None
