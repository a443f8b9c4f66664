"""The instances that may lead partitions: registered ones that are not decommissioned."""

from msgspec.structs import replace

from semel_common.errors import BrokerNotAvailableError, InvalidRequestError
from semel_common.ids import InternalTopic
from semel_coordinator.controller.machine.internal import topics_led_by
from semel_coordinator.controller.machine.records import InstanceRecord
from semel_coordinator.controller.machine.state import (
    CONTROLLER,
    ControllerState,
    InstanceKey,
)
from semel_runtime.cluster.metadata_image import ServiceRole, role_text


def registered_instances(state: ControllerState, role: ServiceRole) -> list[int]:
    """Return all instances of a role that have ever registered, in order."""
    return sorted(key.instance_id for key in state.instances if key.role is role)


def open_instances(state: ControllerState, role: ServiceRole, purpose: str) -> list[int]:
    """Return the instances of a role that may lead partitions, in order.

    Raises BrokerNotAvailableError if there are none, naming the purpose.
    """
    known = registered_instances(state, role)
    if not known:
        raise BrokerNotAvailableError(f"no {role_text(role)} has registered that could {purpose}")
    found = [
        each
        for each in known
        if not state.instances[InstanceKey(role, each)].instance.decommissioned
    ]
    if not found:
        raise BrokerNotAvailableError(
            f"all {len(known)} {role_text(role)}s are decommissioned: none of them can {purpose}"
        )
    return found


def check_target(state: ControllerState, target: InstanceKey) -> None:
    """Raise InvalidRequestError unless partitions may move to an instance."""
    if _registered(state, target, field="broker_id").instance.decommissioned:
        raise InvalidRequestError(
            f"{target} is decommissioned: nothing can move to it", field="broker_id"
        )


def decommissioned(state: ControllerState, key: InstanceKey, *, to: bool) -> list[InstanceRecord]:
    """Return the record that closes an instance to partitions, or opens it; none if it is so.

    Raises InvalidRequestError if there is no such instance, for the controller, and for the last
    instance of its role that may lead partitions.
    """
    if key == CONTROLLER:
        raise InvalidRequestError(
            f"{key} is the controller, which keeps partition 0 of"
            f" {InternalTopic.TRANSACTION_STATE.value}: it cannot be decommissioned",
            field="instance_id",
        )
    known = _registered(state, key, field="instance_id")
    if known.instance.decommissioned == to:
        return []
    if to:
        _check_not_last(state, key)
    instance = replace(known.instance, decommissioned=to)
    return [replace(known, version=state.version + 1, instance=instance)]


def _check_not_last(state: ControllerState, key: InstanceKey) -> None:
    role = role_text(key.role)
    if open_instances(state, key.role, "lead partitions") == [key.instance_id]:
        raise InvalidRequestError(
            f"{key} is the last {role} that may lead partitions: start another {role}, or undo the"
            " decommissioning of one, before you decommission it",
            field="instance_id",
        )


def held(state: ControllerState, key: InstanceKey) -> int:
    """Count the partitions that an instance leads, or that move to it."""
    return sum(
        key.instance_id in {leader.leader_id, leader.moving_to}
        for topic in topics_led_by(state, key.role)
        for leader in topic.partitions
    )


def _registered(state: ControllerState, key: InstanceKey, *, field: str) -> InstanceRecord:
    known = state.instances.get(key)
    if known is None:
        raise InvalidRequestError(f"no {key} has ever registered", field=field)
    return known
