"""What is asked before something is deleted: on standard error, like all that is no result."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from semel_cli.shared.command_session import with_client
from semel_cli.shared.confirmation import confirm
from semel_cli.shared.many_things import Outcomes, each_of

if TYPE_CHECKING:
    from aiosemel import SemelClient


def confirm_each(
    names: Sequence[str],
    look: "Callable[[SemelClient, str], Awaitable[object]]",
    question: Callable[[str], str],
    *,
    bootstrap: str | None,
) -> Outcomes[str]:
    """Ask the user about the names that exist, and return these names.

    ``question`` makes the question of the names. A name for which ``look`` raises an error is
    refused with this error, without a question. Raises typer.Abort unless the answer is yes.
    """

    async def look_at_all(client: "SemelClient") -> Outcomes[str]:
        async def look_at(name: str) -> str:
            await look(client, name)
            return name

        return await each_of(names, look_at)

    found = with_client(bootstrap, look_at_all, changes=True)
    if found.done:
        confirm(question(", ".join(found.done)))
    return found
