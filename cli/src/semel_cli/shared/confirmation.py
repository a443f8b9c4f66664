"""Questions to a person: on standard error, as all that is no result."""

import sys

import typer


def confirm(question: str) -> None:
    """Ask a person. Raises typer.Abort unless the answer is yes."""
    print(f"{question} [y/N]: ", end="", file=sys.stderr, flush=True)
    answer = b"" if sys.stdin is None else sys.stdin.buffer.readline()  # None: it is closed.
    if answer.strip().lower() not in {b"y", b"yes"}:
        raise typer.Abort


def can_see() -> bool:
    """Return whether a person reads along: standard error is a terminal."""
    return sys.stderr.isatty()


def can_ask() -> bool:
    """Return whether a person can answer: standard input is a terminal, and no data."""
    return sys.stdin is not None and sys.stdin.isatty()
