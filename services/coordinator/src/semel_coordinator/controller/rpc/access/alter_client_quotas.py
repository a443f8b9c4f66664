"""AlterClientQuotas: limits of users change."""

from dataclasses import dataclass

from semel.coordinator.v1 import quotas_pb2 as wire
from semel_common.wire.messages.request_bounds import NAMES_MAX
from semel_coordinator.controller.machine import QuotaChange
from semel_coordinator.controller.rpc.change_parts import ChangeParts
from semel_coordinator.controller.rpc.field_checks import require_users
from semel_runtime.access.access_serde import quotas_to_wire
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count


@dataclass(frozen=True, slots=True)
class QuotaAlterer:
    """Answers AlterClientQuotas."""

    parts: ChangeParts

    async def alter_client_quotas(
        self, request: wire.AlterClientQuotasRequest, _call: Call
    ) -> wire.AlterClientQuotasResponse:
        """Change limits of users, all or none."""
        changes = _changes(request)
        after = await self.parts.runner.run(
            lambda: self.parts.machine.alter_client_quotas(
                changes, validate_only=request.validate_only
            ),
            privileged=True,
        )
        return wire.AlterClientQuotasResponse(client_quotas=quotas_to_wire(after))


def _changes(request: wire.AlterClientQuotasRequest) -> list[QuotaChange]:
    """Read the changes; the machine checks the limits."""
    require_count("changes", request.changes, minimum=1, maximum=NAMES_MAX)
    require_users([change.user for change in request.changes])
    for change in request.changes:
        require_count("changes.remove", change.remove, maximum=NAMES_MAX)
    return [
        QuotaChange(user=change.user, set_=dict(change.set), remove=tuple(change.remove))
        for change in request.changes
    ]
