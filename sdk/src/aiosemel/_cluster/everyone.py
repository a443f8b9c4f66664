"""One question to every instance of a role, and what to do if some of them do not answer."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from aiosemel._cluster.metadata import Role
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster, Route
from aiosemel.errors import IncompleteListError, RetriableError, SemelError

A = TypeVar("A")
L = TypeVar("L")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers(Generic[A]):
    """The answers of the instances of a role, in the order of their numbers."""

    given: tuple[A, ...]
    errors: Mapping[str, RetriableError]
    """The last error of each instance that did not answer, by its name."""

    def whole(self, listed: L) -> L:
        """Return the list that was made of the answers; raises IncompleteListError with it."""
        if not self.errors:
            return listed
        raise IncompleteListError(partial=listed, errors=self.errors)


async def ask_everyone(
    cluster: Cluster, role: Role, ask: Callable[[Route], Awaitable[A]], deadline: Deadline
) -> Answers[A]:
    """Ask each coordinator, or each group coordinator, at the same time.

    ``ask`` repeats its calls until the deadline. Raises its error if no instance answers, or if the
    error is not retriable.
    """
    routes = await cluster.everyone(role, deadline)
    async with asyncio.TaskGroup() as group:
        tasks = {name: group.create_task(_answer(ask(route))) for name, route in routes.items()}
    answers = {name: task.result() for name, task in tasks.items()}
    errors = {name: each for name, each in answers.items() if isinstance(each, SemelError)}
    silent = {name: each for name, each in errors.items() if isinstance(each, RetriableError)}
    given = [each for each in answers.values() if not isinstance(each, SemelError)]
    for name, error in errors.items():
        if not given or name not in silent:
            raise error
    return Answers(given=tuple(given), errors=silent)


async def _answer(asked: Awaitable[A]) -> A | SemelError:
    try:
        return await asked
    except SemelError as error:
        return error
