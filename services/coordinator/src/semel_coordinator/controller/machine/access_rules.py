"""Deciding on access rules and client quotas: what is added, removed, and how many there may be."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from semel_common.errors import InvalidRequestError, ThrottlingQuotaExceededError
from semel_coordinator.controller.machine.limits import ControllerLimits
from semel_coordinator.controller.machine.records import (
    AclDeletedRecord,
    AclRecord,
    ClientQuotaRecord,
)
from semel_coordinator.controller.machine.state import ControllerState
from semel_runtime.access.acls import Acl, AclFilter, check_acl
from semel_runtime.access.client_quotas import ClientQuota, altered


class QuotaChange(Struct, frozen=True, kw_only=True):
    """What changes for one user."""

    user: str
    set_: Mapping[str, float]
    remove: tuple[str, ...] = ()


def added(state: ControllerState, limits: ControllerLimits, acls: Iterable[Acl]) -> list[AclRecord]:
    """Return the records of new rules; a rule that exists already needs none.

    Raises InvalidRequestError for one that could never count, ThrottlingQuotaExceededError past the
    limit: then nothing is added.
    """
    new = [acl for acl in dict.fromkeys(acls) if acl not in state.acls]
    for acl in new:
        check_acl(acl)
    if len(state.acls) + len(new) > limits.acls_max:
        raise ThrottlingQuotaExceededError(
            f"{len(new)} access rules are too many: the cluster has {len(state.acls)} and may"
            f" have {limits.acls_max}"
        )
    return [AclRecord(version=state.version + i, acl=acl) for i, acl in enumerate(new, start=1)]


def removed(state: ControllerState, filters: Sequence[AclFilter]) -> list[AclDeletedRecord]:
    """Return the records that take away what any filter matches."""
    found = sorted(acl for acl in state.acls if any(each.matches(acl) for each in filters))
    return [
        AclDeletedRecord(version=state.version + i, acl=acl) for i, acl in enumerate(found, start=1)
    ]


def limited(
    state: ControllerState, limits: ControllerLimits, changes: Sequence[QuotaChange]
) -> tuple[list[ClientQuota], list[ClientQuotaRecord]]:
    """Return the resulting limits of each user, and the records of the new ones.

    Raises InvalidRequestError, ThrottlingQuotaExceededError: then nothing changes.
    """
    if len({change.user for change in changes}) < len(changes):
        raise InvalidRequestError("a user is named more than once", field="changes")
    after = [
        altered(
            state.client_quotas.get(change.user, ClientQuota(user=change.user)),
            set_=change.set_,
            remove=change.remove,
        )
        for change in changes
    ]
    new = [each for each in after if state.limits_of(each.user) != each.limits]
    users = len(state.client_quotas.keys() | {each.user for each in new if each.limits})
    if users > limits.client_quotas_max:
        raise ThrottlingQuotaExceededError(
            f"{users} users with limits are too many: there may be {limits.client_quotas_max}"
        )
    records = [
        ClientQuotaRecord(version=state.version + i, client_quota=each)
        for i, each in enumerate(new, start=1)
    ]
    return after, records
