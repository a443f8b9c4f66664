"""The controller as a pure machine: decides on instances and topics, and knows them all."""

from semel_coordinator.controller.machine.access_rules import QuotaChange
from semel_coordinator.controller.machine.controller_machine import ControllerMachine
from semel_coordinator.controller.machine.limits import ControllerLimits
from semel_coordinator.controller.machine.reassignment import (
    Completion,
    Move,
    Reassigned,
    Reassignment,
)
from semel_coordinator.controller.machine.registration import Registration
from semel_coordinator.controller.machine.state import CONTROLLER, InstanceKey
from semel_coordinator.controller.machine.topics import NewTopic

__all__ = [
    "CONTROLLER",
    "Completion",
    "ControllerLimits",
    "ControllerMachine",
    "InstanceKey",
    "Move",
    "NewTopic",
    "QuotaChange",
    "Reassigned",
    "Reassignment",
    "Registration",
]
