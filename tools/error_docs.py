"""The tables of errors in docs/: made from the docstrings of the error classes, their one source.

The first paragraph of a docstring is what the error means. The paragraphs "Outside of a
transaction" and "Inside a transaction" are what a client does. A class without them inherits both.
"""

import inspect
import re
from collections.abc import Iterator
from typing import NamedTuple

from semel_common import client_errors, errors
from semel_common.errors import SemelError
from semel_common.wire.status import status_code_of

_ACTIONS = {
    "outside": "Outside of a transaction: ",
    "inside": "Inside a transaction: ",
}
_BLOCK = re.compile(
    r"(<!-- generated: error classes -->\n).*?(<!-- end of generated -->\n)", re.DOTALL
)


class Action(NamedTuple):
    """What a client does about an error."""

    outside: str
    inside: str


def action_of(cls: type[SemelError]) -> Action | None:
    """Return what the docstring of a class says to do; None: the class inherits that."""
    paragraphs = [" ".join(part.split()) for part in _doc(cls).split("\n\n")]
    found = {
        field: paragraph.removeprefix(start)
        for field, start in _ACTIONS.items()
        for paragraph in paragraphs
        if paragraph.startswith(start)
    }
    return Action(**found) if found else None


def errors_page() -> Iterator[str]:
    """Return the lines of docs/reference/errors.md."""
    yield from (
        "A failed call carries a gRPC status and `google.rpc.ErrorInfo`: the domain is `semel`,",
        "the reason is the name below, and the metadata have the facts. The message of the status",
        "begins with the reason and the class. Results for a partition are values inside the",
        "response, `semel.common.v1.Error`. Both carry the action of the caller in `error_class`,",
        "so a program needs these lists only for servers older than that field. A row without an",
        "action of its own has the action of its class.",
    )
    yield from _section(SemelError)
    for general in _general_classes(SemelError):
        yield from _section(general)
    yield from _errors_of_clients()


def with_class_table(page: str) -> str:
    """Return a page with the table of error classes between its two marks."""
    assert _BLOCK.search(page), "the page has no marks of the table of error classes"
    table = "\n".join(_class_table())
    return _BLOCK.sub(lambda found: f"{found[1]}{table}\n{found[2]}", page)


def _class_table() -> Iterator[str]:
    yield "| class | outside of a transaction | inside a transaction |"
    yield "|---|---|---|"
    ordered: list[type[SemelError]] = [*_general_classes(SemelError), SemelError]
    for cls in ordered:
        action = action_of(cls)
        if action is not None:
            yield f"| `{cls.error_class.name}` | {action.outside} | {action.inside} |"


def _section(general: type[SemelError]) -> Iterator[str]:
    leaves = [subclass for subclass in general.__subclasses__() if not _is_general(subclass)]
    if general is errors.InvalidRequestError:
        leaves.append(general)
    if not leaves:
        return
    yield from ("", f"## {general.__name__}", "")
    yield f"{_first_paragraph(general)} `error_class`: `{general.error_class.name}`."
    action = action_of(general)
    if action is not None:
        for start, text in zip(_ACTIONS.values(), action, strict=True):
            yield from ("", f"{start}{text}")
    yield ""
    yield "| reason | number | gRPC status | class | means | outside of a transaction | inside |"
    yield "|---|---|---|---|---|---|---|"
    for leaf in sorted(leaves, key=lambda leaf: leaf.code.value):
        if _is_of_the_protocol(leaf):
            yield _row(leaf, None if leaf is general else action_of(leaf))


def _row(leaf: type[SemelError], action: Action | None) -> str:
    cells = (
        f"`{leaf.code.name}`",
        str(leaf.code.value),
        status_code_of(leaf("")).name,
        f"`{leaf.__name__}`",
        _first_paragraph(leaf),
        *(action or ("", "")),
    )
    return f"| {' | '.join(cells)} |"


def _errors_of_clients() -> Iterator[str]:
    """List what only clients raise: errors with the number of another one."""
    yield from ("", "## Errors that only clients raise", "")
    yield "Servers never answer these errors. Each also belongs to a general class."
    yield from ("", "| class | is also | means |", "|---|---|---|")
    for error in (client_errors.InvalidResponseError, client_errors.SslAuthenticationError):
        means = _first_paragraph(error)
        yield f"| `{error.__name__}` | `{error.__mro__[1].__name__}` | {means} |"


def _general_classes(cls: type[SemelError]) -> Iterator[type[SemelError]]:
    for sub in cls.__subclasses__():
        if _is_general(sub):
            yield sub
            yield from _general_classes(sub)


def _is_general(cls: type[SemelError]) -> bool:
    """Whether a class is one of what to do; others have the number of one error."""
    return _is_of_the_protocol(cls) and (
        "code" not in vars(cls) or cls is errors.InvalidRequestError
    )


def _is_of_the_protocol(cls: type[SemelError]) -> bool:
    """Whether servers answer an error; others are of clients alone, such as those of the SDK."""
    return vars(errors).get(cls.__name__) is cls


def _first_paragraph(cls: type) -> str:
    return " ".join(_doc(cls).split("\n\n", maxsplit=1)[0].split())


def _doc(cls: type) -> str:
    return inspect.getdoc(cls) or ""
