"""Which brokers may lead partitions: those that have registered, and are not decommissioned."""

from msgspec.structs import replace

from semel_common.errors import BrokerNotAvailableError, InvalidRequestError
from semel_coordinator.controller.machine.state import ControllerState, InstanceKey
from semel_coordinator.controller.records import InstanceRecord
from semel_runtime.cluster.image import ServiceRole


def open_brokers(state: ControllerState, purpose: str) -> list[int]:
    """Return the brokers that may lead partitions, in order.

    Raises BrokerNotAvailableError if there are none, naming the purpose.
    """
    brokers = {
        key.instance_id: record.instance.decommissioned
        for key, record in state.instances.items()
        if key.role is ServiceRole.BROKER
    }
    if not brokers:
        raise BrokerNotAvailableError(f"no broker has registered that could {purpose}")
    found = sorted(each for each, decommissioned in brokers.items() if not decommissioned)
    if not found:
        raise BrokerNotAvailableError(
            f"all {len(brokers)} brokers are decommissioned: none of them can {purpose}"
        )
    return found


def check_target(state: ControllerState, broker_id: int) -> None:
    """Raise InvalidRequestError unless partitions may move to a broker."""
    if _registered(state, broker_id).instance.decommissioned:
        raise InvalidRequestError(
            f"broker {broker_id} is decommissioned: nothing can move to it", field="broker_id"
        )


def decommissioned(state: ControllerState, broker_id: int, *, to: bool) -> list[InstanceRecord]:
    """Return the record that closes a broker to partitions, or opens it; none if it is so already.

    Raises InvalidRequestError if there is no such broker.
    """
    known = _registered(state, broker_id)
    if known.instance.decommissioned == to:
        return []
    instance = replace(known.instance, decommissioned=to)
    return [replace(known, version=state.version + 1, instance=instance)]


def held(state: ControllerState, broker_id: int) -> int:
    """Count the partitions that a broker leads, or that move to it."""
    return sum(
        broker_id in {leader.leader_id, leader.moving_to}
        for record in state.topics.values()
        for leader in record.topic.partitions
    )


def _registered(state: ControllerState, broker_id: int) -> InstanceRecord:
    known = state.instances.get(InstanceKey(ServiceRole.BROKER, broker_id))
    if known is None:
        raise InvalidRequestError(f"no broker {broker_id} has ever registered", field="broker_id")
    return known
