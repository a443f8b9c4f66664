"""What an assignor is: from what members subscribe to, to what each is to hold.

An assignor is a pure function: the same members, topics and last target give the same target, on
every instance. It gives every partition of every subscribed topic to exactly one subscriber.
"""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from semel_common.ids import TopicPartition

Subscriptions: TypeAlias = Mapping[str, frozenset[str]]
"""The topic ids that each member wants, by member id. Where members are alike, the first in this
order comes first."""

Target: TypeAlias = Mapping[str, frozenset[TopicPartition]]
"""What each member is to hold, by member id."""


class Assignor(Protocol):
    """From subscriptions, the partitions of each topic id, and the last target, to the next."""

    def __call__(
        self,
        subscriptions: Subscriptions,
        topics: Mapping[str, int],
        last: Target,
        *,
        speaker: str = "",
    ) -> Target:
        """Return the next target.

        ``speaker`` is the member that can take a partition at once, empty: no member; of members
        that are alike it comes first, as far as the assignor has a choice.
        """
        ...
