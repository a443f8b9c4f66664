"""Older copies of volumes, put back while the cluster works: each must be refused."""

from collections.abc import Sequence
from typing import cast

from semel_coordinator.app import CoordinatorApp
from semel_coordinator.controller.machine import InstanceKey
from semel_local.layout import CONTROLLER, Role
from semel_runtime.claims import JournalMark
from semel_runtime.cluster.controller_note import ControllerMemory
from semel_runtime.cluster.metadata_image import ServiceRole
from semel_runtime.journal import Journal
from simulation.disk import Copy
from simulation.processes import Service

_ROLES = {
    Role.COORDINATOR: ServiceRole.COORDINATOR,
    Role.BROKER: ServiceRole.BROKER,
    Role.GROUP_COORDINATOR: ServiceRole.GROUP_COORDINATOR,
}


def is_known_to_be_older(copy: Copy, service: Service, services: Sequence[Service]) -> bool:
    """Whether an instance knows more of a service's journal than the copy has.

    A copy that is younger than the last registration has all known facts: it is let in.
    """
    if service.name != CONTROLLER:
        mark = _known_to_controller(service, services)
        return mark is not None and _is_above(mark, copy)
    return any(
        _is_above(memory, copy)
        for each in services
        if each.name != CONTROLLER
        if (memory := ControllerMemory(_notes_of(each)).mark) is not None
    )


def _known_to_controller(service: Service, services: Sequence[Service]) -> JournalMark | None:
    controller = next(each for each in services if each.name == CONTROLLER)
    app = controller.app
    if not controller.ready or not isinstance(app, CoordinatorApp):
        return None
    key = InstanceKey(_ROLES[service.name.role], service.name.instance_id)
    known = app._machine.controller._state.instances.get(key)
    return None if known is None else known.mark


def _notes_of(service: Service) -> Journal:
    return cast(Journal, service.volume)  # Its notes are all that is asked for.


def _is_above(mark: JournalMark, copy: Copy) -> bool:
    if mark.claim_epoch != copy.epoch:
        return mark.claim_epoch > copy.epoch
    return mark.end_offset > copy.next_offset
