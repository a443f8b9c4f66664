"""CreateAcls: new access rules."""

from dataclasses import dataclass

from semel.coordinator.v1 import acls_pb2 as wire
from semel_common.wire.messages.request_bounds import NAMES_MAX
from semel_coordinator.controller.rpc.change_parts import ChangeParts
from semel_runtime.access.access_serde import acls_from_wire, acls_to_wire
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count


@dataclass(frozen=True, slots=True)
class AclCreator:
    """Answers CreateAcls."""

    parts: ChangeParts

    async def create_acls(
        self, request: wire.CreateAclsRequest, _call: Call
    ) -> wire.CreateAclsResponse:
        """Add access rules, all or none."""
        require_count("acls", request.acls, minimum=1, maximum=NAMES_MAX)
        acls, dry = acls_from_wire(request.acls), request.validate_only
        # A full disk must not keep an operator from denying access.
        created = await self.parts.runner.run(
            lambda: self.parts.machine.create_acls(acls, validate_only=dry), privileged=True
        )
        return wire.CreateAclsResponse(created=acls_to_wire(created))
