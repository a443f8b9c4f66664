"""Access rules and client quotas as protobuf: on the wire and in journals."""

from collections.abc import Iterable

from semel.common.journal.v1 import cluster_pb2 as journal
from semel.coordinator.v1 import acls_pb2 as wire
from semel.coordinator.v1 import quotas_pb2 as quotas
from semel_common.errors import InvalidRequestError
from semel_common.wire.messages.plain_messages import PlainMessage
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

JOURNAL_ACL = PlainMessage(Acl, journal.AclImage)
JOURNAL_QUOTA = PlainMessage(ClientQuota, journal.ClientQuotaImage)
_ACL = PlainMessage(Acl, wire.AclBinding)
_FILTER = PlainMessage(AclFilter, wire.AclFilter)
_QUOTA = PlainMessage(ClientQuota, quotas.ClientQuota)
_ENUMS = {
    "resource_type": ResourceType,
    "pattern_type": PatternType,
    "operation": Operation,
    "permission": Permission,
}


def acls_from_wire(acls: Iterable[wire.AclBinding]) -> tuple[Acl, ...]:
    """Read rules. Raises InvalidRequestError for a number that means nothing."""
    return tuple(map(_acl_from_wire, acls))


def _acl_from_wire(acl: wire.AclBinding) -> Acl:
    for field in _ENUMS:
        _check_known(field, getattr(acl, field))
    return _ACL.read(acl)


def acls_to_wire(acls: Iterable[Acl]) -> list[wire.AclBinding]:
    """Write rules."""
    return list(map(_ACL.message, acls))


def filter_from_wire(given: wire.AclFilter) -> AclFilter:
    """Read a filter. Raises InvalidRequestError for a number that means nothing."""
    for field in _ENUMS:
        if (number := getattr(given, field)) != ANY:
            _check_known(field, number)
    return _FILTER.read(given)


def quotas_from_wire(given: Iterable[quotas.ClientQuota]) -> tuple[ClientQuota, ...]:
    """Read limits."""
    return tuple(map(_QUOTA.read, given))


def quotas_to_wire(given: Iterable[ClientQuota]) -> list[quotas.ClientQuota]:
    """Write limits."""
    return list(map(_QUOTA.message, given))


def _check_known(field: str, number: int) -> None:
    try:
        _ENUMS[field](number)
    except ValueError:
        raise InvalidRequestError(f"{field} has the unknown value {number}", field=field) from None
