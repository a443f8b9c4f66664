"""DescribeAcls: access rules, page by page."""

import asyncio
from base64 import b64decode, b64encode
from bisect import bisect_right
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from semel.coordinator.v1 import acls_pb2 as wire
from semel_common.errors import InvalidRequestError
from semel_coordinator.controller.rpc.metadata_reader import MetadataReader
from semel_runtime.access.access_serde import acls_from_wire, acls_to_wire, filter_from_wire
from semel_runtime.access.acls import Acl
from semel_runtime.server.calls import Call
from semel_runtime.server.pages import Page, PageTokens

_TOKENS = PageTokens("DescribeAcls")
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
        page, after = Page(request.limit), _acl_after(request.page_token)
        acls = (await self.reader.read(self.reader.image)).acls
        response = wire.DescribeAclsResponse()
        for turn, acl in enumerate(acls[0 if after is None else bisect_right(acls, after) :], 1):
            if wanted.matches(acl):
                (entry,) = acls_to_wire((acl,))
                if not page.takes(entry):
                    response.next_page_token = _token_after(response.acls[-1])
                    break
                response.acls.append(entry)
            if not turn % _RULES_PER_TURN:
                await asyncio.sleep(0)
        return response


def _token_after(binding: wire.AclBinding) -> str:
    """Return the token of a page that ends with this rule."""
    return _TOKENS.after(b64encode(binding.SerializeToString(deterministic=True)).decode())


def _acl_after(token: str) -> Acl | None:
    """Return the rule behind which a page begins; None: at the first one."""
    key = _TOKENS.key(token)
    if key is None:
        return None
    try:
        (acl,) = acls_from_wire((wire.AclBinding.FromString(b64decode(key, validate=True)),))
    except (ValueError, DecodeError, InvalidRequestError) as error:
        raise _TOKENS.unknown(token) from error
    return acl
