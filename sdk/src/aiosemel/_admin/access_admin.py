"""The part of the admin client for permissions and quotas."""

from collections.abc import Awaitable, Iterable, Mapping
from enum import StrEnum
from typing import Protocol, TypeVar

from aiosemel._admin.admin_part import AdminPart
from aiosemel._cluster.pages import pages
from aiosemel.types.access import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermission,
    ClientQuota,
    PatternType,
    ResourceType,
)
from semel.coordinator.v1 import acls_pb2 as acls
from semel.coordinator.v1 import quotas_pb2 as quotas
from semel_common.wire import methods
from semel_common.wire.methods import Method, Req, Res

E = TypeVar("E", bound=StrEnum)


class _Enum(Protocol):
    """An enum of the contract."""

    def Value(self, name: str) -> int: ...  # noqa: N802 - protobuf's name


class AccessAdmin(AdminPart):
    """Changes and lists access rules and client quotas. Made by ``Admin.access``.

    A change is stored when the call returns. Other services follow within milliseconds; one that
    cannot reach the controller goes on with the rules that it knows.
    """

    async def create_acls(
        self, bindings: Iterable[AclBinding], *, validate_only: bool = False
    ) -> list[AclBinding]:
        """Add rules, all or none; returns the rules that are new. May be repeated.

        Raises InvalidRequestError for one that could never count.
        """
        request = acls.CreateAclsRequest(
            acls=map(_binding_to_wire, bindings), validate_only=validate_only
        )
        response = await self._call(methods.CREATE_ACLS, request)
        return [_binding(each) for each in response.created]

    async def describe_acls(self, wanted: AclBindingFilter | None = None) -> list[AclBinding]:
        """Return the rules that a filter matches; without one, all."""
        matched = _filter_to_wire(wanted or AclBindingFilter())

        def ask(token: str) -> Awaitable[acls.DescribeAclsResponse]:
            request = acls.DescribeAclsRequest(filter=matched, page_token=token)
            return self._call(methods.DESCRIBE_ACLS, request)

        return [_binding(acl) async for page in pages(ask) for acl in page.acls]

    async def delete_acls(
        self, filters: Iterable[AclBindingFilter], *, validate_only: bool = False
    ) -> list[AclBinding]:
        """Remove every rule that any filter matches; returns them. May be repeated.

        If an answer was lost on the way, a repeat does not return what was removed before.
        """
        request = acls.DeleteAclsRequest(
            filters=map(_filter_to_wire, filters), validate_only=validate_only
        )
        response = await self._call(methods.DELETE_ACLS, request)
        return [_binding(each) for each in response.deleted]

    async def alter_client_quotas(
        self,
        user: str | None,
        *,
        set_limits: Mapping[str, float] | None = None,
        remove: Iterable[str] = (),
        validate_only: bool = False,
    ) -> ClientQuota:
        """Set some limits of a user, remove others; returns what holds then. May be repeated.

        ``user`` None: all users without limits of their own. Raises InvalidRequestError.
        """
        change = quotas.ClientQuotaChange(
            user=user or "", set=dict(set_limits or {}), remove=list(remove)
        )
        request = quotas.AlterClientQuotasRequest(changes=[change], validate_only=validate_only)
        response = await self._call(methods.ALTER_CLIENT_QUOTAS, request)
        return _quota(response.client_quotas[0])

    async def describe_client_quotas(self) -> list[ClientQuota]:
        """Return the limits of all users that have any."""

        def ask(token: str) -> Awaitable[quotas.DescribeClientQuotasResponse]:
            request = quotas.DescribeClientQuotasRequest(page_token=token)
            return self._call(methods.DESCRIBE_CLIENT_QUOTAS, request)

        return [
            _quota(client_quota) async for page in pages(ask) for client_quota in page.client_quotas
        ]

    async def _call(self, method: Method[Req, Res], request: Req) -> Res:
        return await self._cluster.call(
            self._cluster.any_coordinator(),
            method,
            request,
            deadline=self._deadline(),
        )


def _binding_to_wire(binding: AclBinding) -> acls.AclBinding:
    return acls.AclBinding(
        resource_type=_number(acls.ResourceType, "RESOURCE_TYPE", binding.resource_type),  # type: ignore[arg-type]  # the enum's number
        resource_name=binding.resource_name,
        pattern_type=_number(acls.PatternType, "PATTERN_TYPE", binding.pattern_type),  # type: ignore[arg-type]  # the enum's number
        principal=binding.principal,
        operation=_number(acls.AclOperation, "ACL_OPERATION", binding.operation),  # type: ignore[arg-type]  # the enum's number
        permission=_number(acls.AclPermission, "ACL_PERMISSION", binding.permission),  # type: ignore[arg-type]  # the enum's number
    )


def _filter_to_wire(wanted: AclBindingFilter) -> acls.AclFilter:
    return acls.AclFilter(
        resource_type=_number(acls.ResourceType, "RESOURCE_TYPE", wanted.resource_type),  # type: ignore[arg-type]  # the enum's number
        resource_name=wanted.resource_name or "",
        pattern_type=_number(acls.PatternType, "PATTERN_TYPE", wanted.pattern_type),  # type: ignore[arg-type]  # the enum's number
        principal=wanted.principal or "",
        operation=_number(acls.AclOperation, "ACL_OPERATION", wanted.operation),  # type: ignore[arg-type]  # the enum's number
        permission=_number(acls.AclPermission, "ACL_PERMISSION", wanted.permission),  # type: ignore[arg-type]  # the enum's number
    )


def _binding(binding: acls.AclBinding) -> AclBinding:
    return AclBinding(
        resource_type=_text(
            ResourceType, "RESOURCE_TYPE", acls.ResourceType.Name(binding.resource_type)
        ),
        resource_name=binding.resource_name,
        pattern_type=_text(
            PatternType, "PATTERN_TYPE", acls.PatternType.Name(binding.pattern_type)
        ),
        principal=binding.principal,
        operation=_text(AclOperation, "ACL_OPERATION", acls.AclOperation.Name(binding.operation)),
        permission=_text(
            AclPermission, "ACL_PERMISSION", acls.AclPermission.Name(binding.permission)
        ),
    )


def _quota(quota: quotas.ClientQuota) -> ClientQuota:
    return ClientQuota(user=quota.user or None, limits=dict(quota.limits))


def _number(enum: _Enum, prefix: str, value: StrEnum | None) -> int:
    return 0 if value is None else enum.Value(f"{prefix}_{value.name}")


def _text(enum: type[E], prefix: str, name: str) -> E:
    return enum[name.removeprefix(f"{prefix}_")]
