"""Commands on several things: each is done for itself, and the command names every refused one."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from semel_cli.shared.output import note

if TYPE_CHECKING:
    from aiosemel import SemelError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcomes(Generic[T]):
    """What came of each."""

    done: "list[T]"
    refused: "list[SemelError]"

    def check(self) -> None:
        """End the command if anything was refused, with a sentence for each."""
        if self.refused:
            *others, last = self.refused
            for other in others:
                note(f"semel: {other}")
            raise last


async def each_of(names: Iterable[str], act: Callable[[str], Awaitable[T]]) -> Outcomes[T]:
    """Act on each, also when another one was refused."""
    from aiosemel import SemelError

    outcomes: Outcomes[T] = Outcomes([], [])
    for name in names:
        try:
            outcomes.done.append(await act(name))
        except SemelError as error:
            outcomes.refused.append(error)
    return outcomes
