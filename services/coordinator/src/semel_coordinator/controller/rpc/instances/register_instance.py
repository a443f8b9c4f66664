"""RegisterInstance: an instance tells the controller its address, and that it lives."""

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.errors import InvalidRequestError
from semel_coordinator.controller.loops.instance_liveness import Liveness
from semel_coordinator.controller.loops.own_volume import OwnVolume
from semel_coordinator.controller.machine import CONTROLLER, Registration
from semel_coordinator.controller.machine.records import ClusterRecord
from semel_coordinator.controller.rpc.change_parts import ChangeParts
from semel_coordinator.controller.rpc.instances.registration_requests import (
    read_registration,
    read_shortage,
)
from semel_runtime.clock import Clock
from semel_runtime.cluster.controller_note import mark_to_wire
from semel_runtime.cluster.metadata_serde import layout_to_wire
from semel_runtime.journal.contract import DiskShortage
from semel_runtime.server.calls import Call


class InstanceRegistrar:
    """Answers RegisterInstance."""

    def __init__(
        self, parts: ChangeParts, *, liveness: Liveness, own_volume: OwnVolume, clock: Clock
    ) -> None:
        self._runner = parts.runner
        self._machine = parts.machine
        self._liveness = liveness
        self._own_volume = own_volume
        self._clock = clock

    async def register_instance(
        self, request: wire.RegisterInstanceRequest, _call: Call
    ) -> wire.RegisterInstanceResponse:
        """Note the address of an instance, and that it lives."""
        registration = read_registration(request)
        self._check_own_volume(registration)
        if registration.key == CONTROLLER:
            raise InvalidRequestError(
                f"{registration.key} is the controller itself: no other process can register in"
                " its place",
                field="instance_id",
            )
        cluster = await self.register(registration, read_shortage(request))
        self._own_volume.came(registration.key)
        response = wire.RegisterInstanceResponse(
            cluster_id=cluster.cluster_id, layout=layout_to_wire(cluster.layout)
        )
        if self._own_volume.confirmed.is_set():
            response.controller.CopyFrom(mark_to_wire(self._own_volume.mark()))
        return response

    async def register(
        self, registration: Registration, shortage: DiskShortage | None
    ) -> ClusterRecord:
        """Note an instance's address, that it lives, and whether its disk is short of space."""
        now_ms = self._clock.now_ms()
        cluster = await self._runner.run(
            lambda: self._machine.register_instance(
                registration, is_live=lambda key: self._liveness.is_live(key, now_ms=now_ms)
            )
        )
        self._liveness.note(registration.key, now_ms=now_ms, shortage=shortage)
        return cluster

    def _check_own_volume(self, registration: Registration) -> None:
        """Compare an instance's knowledge of this volume; the machine refuses other clusters'."""
        if registration.cluster_id == self._machine.image().cluster_id:
            self._own_volume.check(registration)
