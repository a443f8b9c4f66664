"""What an assignor is: from what members subscribe to, to what each is to hold.

An assignor is a pure function: the same members, topics and last target give the same target,
whoever computes it. It gives every partition of every subscribed topic to exactly one subscriber.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from semel_common.ids import TopicPartition

Subscriptions: TypeAlias = Mapping[str, frozenset[str]]
"""The topic ids that each member wants, by member id. Where members are alike, the first in this
order comes first."""

Target: TypeAlias = Mapping[str, frozenset[TopicPartition]]
"""What each member is to hold, by member id."""

Assignor: TypeAlias = Callable[[Subscriptions, Mapping[str, int], Target], Target]
"""From subscriptions, the partitions of each topic id, and the last target, to the next."""
