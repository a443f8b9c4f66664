"""What options of several commands may hold."""

import typer


def not_empty(given: str | None) -> str | None:
    """Refuse what a shell leaves of a variable that is not set: it names nothing, not everything.

    Raises typer.BadParameter.
    """
    if given is not None and not given:
        raise typer.BadParameter("is empty: name something, or leave the option out")
    return given
