"""The part of the admin client for permissions and quotas."""

from collections.abc import Awaitable, Iterable, Mapping

from aiosemel._admin.admin_part import AdminPart
from aiosemel._cluster.pages import pages
from aiosemel.types.access import (
    AclBinding,
    AclBindingFilter,
    ClientQuota,
)
from semel.coordinator.v1 import acls_pb2 as acls
from semel.coordinator.v1 import quotas_pb2 as quotas
from semel_common.wire import methods
from semel_common.wire.messages.plain_messages import PlainMessage
from semel_common.wire.methods import Method, Req, Res

_BINDING = PlainMessage(AclBinding, acls.AclBinding)
_FILTER = PlainMessage(AclBindingFilter, acls.AclFilter)


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
            acls=map(_BINDING.message, bindings), validate_only=validate_only
        )
        response = await self._call(methods.CREATE_ACLS, request)
        return list(map(_BINDING.read, response.created))

    async def describe_acls(self, wanted: AclBindingFilter | None = None) -> list[AclBinding]:
        """Return the rules that a filter matches; without one, all."""
        matched = _FILTER.message(wanted or AclBindingFilter())

        def ask(token: str) -> Awaitable[acls.DescribeAclsResponse]:
            request = acls.DescribeAclsRequest(filter=matched, page_token=token)
            return self._call(methods.DESCRIBE_ACLS, request)

        return [_BINDING.read(acl) async for page in pages(ask) for acl in page.acls]

    async def delete_acls(
        self, filters: Iterable[AclBindingFilter], *, validate_only: bool = False
    ) -> list[AclBinding]:
        """Remove every rule that any filter matches; returns them. May be repeated.

        If an answer was lost on the way, a repeat does not return what was removed before.
        """
        request = acls.DeleteAclsRequest(
            filters=map(_FILTER.message, filters), validate_only=validate_only
        )
        response = await self._call(methods.DELETE_ACLS, request)
        return list(map(_BINDING.read, response.deleted))

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


def _quota(quota: quotas.ClientQuota) -> ClientQuota:
    return ClientQuota(user=quota.user or None, limits=dict(quota.limits))
