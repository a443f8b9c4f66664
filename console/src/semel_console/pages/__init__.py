"""The pages of the console, one module each, by their paths."""

from collections.abc import Awaitable, Callable, Mapping

from starlette.responses import Response

from semel_console.pages import (
    actions,
    audit,
    cluster,
    groups,
    history,
    home,
    messages,
    partition,
    prepared,
    rules,
    search,
    tail,
    topics,
    transaction,
    transaction_list,
    why,
)
from semel_console.web.visit import Visit

PAGES: Mapping[str, Callable[[Visit], Awaitable[Response]]] = {
    "/": home.show,
    "/action": actions.rehearse,
    "/audit": audit.show,
    "/cluster": cluster.show,
    "/group": groups.show_one,
    "/groups": groups.show_list,
    "/history": history.show,
    "/messages": messages.show,
    "/partition": partition.show,
    "/prepared": prepared.show,
    "/rules": rules.show,
    "/search": search.show,
    "/tail": tail.show,
    "/topic": topics.show_one,
    "/topics": topics.show_list,
    "/transaction": transaction.show,
    "/transactions": transaction_list.show,
    "/why": why.show,
}

ACTIONS: Mapping[str, Callable[[Visit], Awaitable[Response]]] = {"/action": actions.act}
"""What changes something, by its path."""
