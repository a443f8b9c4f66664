"""DescribeClientQuotas: the limits of users, page by page."""

from dataclasses import dataclass

from semel.coordinator.v1 import quotas_pb2 as wire
from semel_common.wire.messages.request_bounds import NAMES_MAX
from semel_coordinator.controller.rpc.field_checks import require_users
from semel_coordinator.controller.rpc.metadata_reader import MetadataReader
from semel_runtime.access.access_serde import quotas_to_wire
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count
from semel_runtime.server.pages import Page, PageTokens

_TOKENS = PageTokens("DescribeClientQuotas")
"""Their key may be empty: it is the name of no user, whose limits are those of all others."""


@dataclass(frozen=True, slots=True)
class QuotaDescriber:
    """Answers DescribeClientQuotas."""

    reader: MetadataReader

    async def describe_client_quotas(
        self, request: wire.DescribeClientQuotasRequest, _call: Call
    ) -> wire.DescribeClientQuotasResponse:
        """Answer the limits of users."""
        require_count("users", request.users, maximum=NAMES_MAX)
        require_users(request.users)
        users = set(request.users)
        page, after = Page(request.limit), _TOKENS.key(request.page_token)
        found = (await self.reader.read(self.reader.image)).client_quotas
        wanted = (quotas for quotas in found if not users or quotas.user in users)
        response = wire.DescribeClientQuotasResponse()
        for entry in quotas_to_wire(wanted):
            if after is not None and entry.user <= after:
                continue
            if not page.takes(entry):
                response.next_page_token = _TOKENS.after(response.client_quotas[-1].user)
                break
            response.client_quotas.append(entry)
        return response
