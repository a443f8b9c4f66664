"""DescribeAcls: access rules, page by page."""

import asyncio
from bisect import bisect_right
from dataclasses import dataclass

from semel.coordinator.v1 import acls_pb2 as wire
from semel_coordinator.controller.rpc.metadata_reader import MetadataReader
from semel_runtime.access.access_serde import (
    acl_after,
    acls_to_wire,
    filter_from_wire,
    page_token_of,
)
from semel_runtime.server.calls import Call
from semel_runtime.server.pages import Page

_RULES_PER_TURN = 1_000
"""Access rules that the coordinator looks at before other callers have their turn."""


@dataclass(frozen=True, slots=True)
class AclDescriber:
    """Answers DescribeAcls."""

    reader: MetadataReader

    async def describe_acls(
        self, request: wire.DescribeAclsRequest, _call: Call
    ) -> wire.DescribeAclsResponse:
        """Answer the access rules that a filter matches."""
        wanted = filter_from_wire(request.filter)
        page, after = Page(request.limit), acl_after(request.page_token)
        acls = (await self.reader.read(self.reader.image)).acls
        response = wire.DescribeAclsResponse()
        for turn, acl in enumerate(acls[0 if after is None else bisect_right(acls, after) :], 1):
            if wanted.matches(acl):
                (entry,) = acls_to_wire((acl,))
                if not page.takes(entry):
                    response.next_page_token = page_token_of(response.acls[-1])
                    break
                response.acls.append(entry)
            if not turn % _RULES_PER_TURN:
                await asyncio.sleep(0)
        return response
