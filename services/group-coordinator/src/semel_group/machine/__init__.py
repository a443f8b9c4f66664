"""What a group coordinator decides. Pure: no I/O, no clock, no chance, no protobuf."""

from semel_group.machine.limits import GroupLimits
from semel_group.machine.machine import GroupMachine

__all__ = ["GroupLimits", "GroupMachine"]
