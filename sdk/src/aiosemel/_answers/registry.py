"""Which check belongs to which RPC."""

from collections.abc import Callable
from typing import TypeVar, cast

from google.protobuf.message import Message

from semel_common.wire.methods import Method

Req = TypeVar("Req", bound=Message)
Res = TypeVar("Res", bound=Message)

Check = Callable[[Req, Res], None]
"""Raises ``Unfit`` if an answer cannot be believed, or does not fit its request."""
AnyCheck = Callable[[Message, Message], None]


class Checks:
    """The checks of one service, by the path of the RPC."""

    def __init__(self) -> None:
        self.by_path: dict[str, AnyCheck] = {}

    def of(self, method: Method[Req, Res]) -> Callable[[Check[Req, Res]], Check[Req, Res]]:
        """Make a function the check of an RPC."""

        def added(check: Check[Req, Res]) -> Check[Req, Res]:
            assert method.path not in self.by_path, f"{method.name} has two checks"
            self.by_path[method.path] = cast("AnyCheck", check)
            return check

        return added

    def says_nothing(self, *methods: Method[Message, Message]) -> None:
        """Know of RPCs whose answers have no field but the throttle time."""
        for method in methods:
            self.by_path[method.path] = _nothing


def _nothing(request: Message, answer: Message) -> None:
    """Check nothing: there is nothing to believe."""
