"""Which partitions each user has looked into: looks that follow soon are one entry of the audit."""

import time
from collections import OrderedDict
from weakref import WeakKeyDictionary

from aiosemel import SemelClient, TopicPartition

_SAME_LOOK_S = 600.0
"""An open page looks again every two seconds: its entries would displace all others."""
_PARTITIONS_MAX = 1_000
"""So many are kept for each user."""


class Readings:
    """Knows for a while which partitions a user has looked into."""

    def __init__(self) -> None:
        """Know no look yet."""
        self._looks: WeakKeyDictionary[SemelClient, OrderedDict[TopicPartition, float]] = (
            WeakKeyDictionary()
        )

    def is_noted(self, client: SemelClient, at: TopicPartition) -> bool:
        """Whether this user has looked into a partition some minutes ago, or later."""
        looks = self._looks.get(client)
        return looks is not None and time.monotonic() - looks.get(at, -_SAME_LOOK_S) < _SAME_LOOK_S

    def note(self, client: SemelClient, at: TopicPartition) -> None:
        """Take down that a user has looked into a partition: the audit has an entry of it."""
        looks = self._looks.setdefault(client, OrderedDict())
        looks[at] = time.monotonic()
        looks.move_to_end(at)
        if len(looks) > _PARTITIONS_MAX:
            looks.popitem(last=False)
