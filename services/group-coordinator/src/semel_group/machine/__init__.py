"""What a group coordinator decides. Pure: no I/O, no clock, no chance, no protobuf."""

from semel_group.machine.group_machine import GroupMachine
from semel_group.machine.limits import GroupLimits

__all__ = ["GroupLimits", "GroupMachine"]
