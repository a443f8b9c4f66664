"""What is asked before something is deleted: on standard error, like all that is no result."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import typer

from semel_cli.session import with_client
from semel_cli.several import Outcomes, each_of

if TYPE_CHECKING:
    from aiosemel import SemelClient


def confirm(question: str) -> None:
    """Ask a person. Raises typer.Abort unless the answer is yes."""
    print(f"{question} [y/N]: ", end="", file=sys.stderr, flush=True)
    answer = b"" if sys.stdin is None else sys.stdin.buffer.readline()  # None: it is closed.
    if answer.strip().lower() not in {b"y", b"yes"}:
        raise typer.Abort


def confirm_each(
    names: Sequence[str],
    look: "Callable[[SemelClient, str], Awaitable[object]]",
    question: Callable[[str], str],
    *,
    bootstrap: str | None,
) -> Outcomes[str]:
    """Ask about those that are there; ``question`` is given their names. Returns them.

    The others are refused with what ``look`` raises, and nobody is asked about them. Raises
    typer.Abort unless the answer is yes.
    """

    async def look_at_all(client: "SemelClient") -> Outcomes[str]:
        async def look_at(name: str) -> str:
            await look(client, name)
            return name

        return await each_of(names, look_at)

    found = with_client(bootstrap, look_at_all)
    if found.done:
        confirm(question(", ".join(found.done)))
    return found
