"""The resources that operations work with."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from aiosemel import SemelClient

TOPIC, PARTITION = "orders", ("orders", 0)
GROUP, MEMBERS = "readers", "members"


class World(NamedTuple):
    """The resources that an operation works with."""

    client: SemelClient
    topic_id: str
    number: int
    """Another one each time."""

    @property
    def name(self) -> str:
        """Something that was not named before."""
        return f"x-{self.number}"


Operation = Callable[[World], Awaitable[object]]
