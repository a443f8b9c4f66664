"""DeleteAcls: access rules that filters match are removed."""

from dataclasses import dataclass

from semel.coordinator.v1 import acls_pb2 as wire
from semel_common.wire.messages.request_bounds import FILTERS_MAX
from semel_coordinator.controller.rpc.change_parts import ChangeParts
from semel_runtime.access.access_serde import acls_to_wire, filter_from_wire
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count


@dataclass(frozen=True, slots=True)
class AclDeleter:
    """Answers DeleteAcls."""

    parts: ChangeParts

    async def delete_acls(
        self, request: wire.DeleteAclsRequest, _call: Call
    ) -> wire.DeleteAclsResponse:
        """Remove access rules."""
        require_count("filters", request.filters, minimum=1, maximum=FILTERS_MAX)
        filters = [filter_from_wire(wanted) for wanted in request.filters]
        deleted = await self.parts.runner.run(
            lambda: self.parts.machine.delete_acls(filters, validate_only=request.validate_only),
            privileged=True,
        )
        return wire.DeleteAclsResponse(deleted=acls_to_wire(deleted))
