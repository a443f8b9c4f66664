"""Lists of all instances, when some of the instances do not answer."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Generic, TypeVar

from semel_cli.shared.command_errors import CommandError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """A list, and why it is not whole."""

    entries: T
    problem: str = ""
    """Empty: the list is whole."""

    def check(self) -> None:
        """Raise CommandError if the list is not whole: a command shows the rest, and then fails."""
        if self.problem:
            raise CommandError(self.problem)


async def listed_in_part(asked: Awaitable[T]) -> Listed[T]:
    """Return a list, or the entries of the instances that answered; raises SemelError of others."""
    from aiosemel.errors import IncompleteListError

    try:
        return Listed(await asked)
    except IncompleteListError as error:
        return Listed(error.partial, error.message)
