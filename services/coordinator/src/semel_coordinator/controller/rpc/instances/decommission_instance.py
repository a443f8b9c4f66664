"""DecommissionInstance: an instance gets no more partitions, or is open to them again."""

from dataclasses import dataclass

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_coordinator.controller.machine import InstanceKey
from semel_coordinator.controller.rpc.change_parts import ChangeParts
from semel_runtime.cluster.metadata_image import ServiceRole
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import INT32_MAX, require_int, require_known


@dataclass(frozen=True, slots=True)
class Decommissioner:
    """Answers DecommissionInstance."""

    parts: ChangeParts

    async def decommission_instance(
        self, request: wire.DecommissionInstanceRequest, _call: Call
    ) -> wire.DecommissionInstanceResponse:
        """Close an instance to partitions, or open it again."""
        key = _instance(request)
        left = await self.parts.runner.run(
            lambda: self.parts.machine.decommission_instance(key, to=request.decommissioned),
            privileged=True,
        )
        return wire.DecommissionInstanceResponse(leader_partitions=left)


def _instance(request: wire.DecommissionInstanceRequest) -> InstanceKey:
    """Read the instance; each error names the field."""
    role = require_known("role", request.role, tuple(ServiceRole))
    instance_id = require_int("instance_id", request.instance_id, maximum=INT32_MAX)
    return InstanceKey(ServiceRole(role), instance_id)
