"""The assignors that a group may use, and how it chooses one (KIP-848)."""

from collections import Counter
from collections.abc import Iterable, Mapping

from semel_group.machine.membership.assignment import Assignor
from semel_group.machine.membership.range_assignor import assign_range
from semel_group.machine.membership.uniform_assignor import assign_uniform

RANGE = "range"
UNIFORM = "uniform"

ASSIGNORS: Mapping[str, Assignor] = {RANGE: assign_range, UNIFORM: assign_uniform}
"""Every assignor, by the name by which members ask for it."""

DEFAULT_ASSIGNOR = UNIFORM
"""Kafka's default too (``group.consumer.assignors``)."""


def preferred_assignor(asked_for: Iterable[str]) -> str:
    """Return the assignor that most members asked for; an empty name stands for any."""
    votes = Counter(name for name in asked_for if name)
    return min(votes, key=lambda name: (-votes[name], name), default=DEFAULT_ASSIGNOR)
