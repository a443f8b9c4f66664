"""One question to all instances: which answers make a list, and which errors end it."""

from collections.abc import Awaitable, Callable

import pytest
from cluster_calls import cluster_of
from producer_harness import FakeCluster

from aiosemel._cluster.everyone import Answers, ask_everyone
from aiosemel._cluster.metadata import COORDINATOR
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Route
from aiosemel.errors import (
    ClusterAuthorizationFailedError,
    IncompleteListError,
    NetworkExceptionError,
    SemelError,
)

ADDRESSES = ("coordinator:1", "coordinator1:1", "coordinator2:1")
AWAY, REFUSED = NetworkExceptionError("connection refused"), ClusterAuthorizationFailedError("no")


def failing(*failures: SemelError | None) -> Callable[[Route], Awaitable[str]]:
    """Return a question that fails at each coordinator as given; None: it answers."""

    async def ask(route: Route) -> str:
        error = failures[ADDRESSES.index(route())]
        if error is not None:
            raise error
        return route()

    return ask


async def asked(*failures: SemelError | None) -> Answers[str]:
    cluster = cluster_of(FakeCluster(coordinators=3))
    return await ask_everyone(cluster, COORDINATOR, failing(*failures), Deadline.after_ms(1_000))


async def test_answers_are_in_the_order_of_the_instances() -> None:
    answers = await asked(None, None, None)
    assert answers.given == ADDRESSES
    assert answers.whole("all") == "all"


async def test_an_instance_that_is_away_is_named_with_its_error() -> None:
    answers = await asked(None, AWAY, None)
    assert answers.given == (ADDRESSES[0], ADDRESSES[2])
    with pytest.raises(IncompleteListError, match="coordinator-1: connection refused") as raised:
        answers.whole("a part")
    assert raised.value.partial == "a part"
    assert raised.value.errors == {"coordinator-1": AWAY}


async def test_without_any_answer_the_first_error_is_raised() -> None:
    with pytest.raises(NetworkExceptionError):
        await asked(AWAY, AWAY, AWAY)


@pytest.mark.parametrize("failures", [(None, REFUSED, None), (AWAY, None, REFUSED)])
async def test_a_refusal_is_no_missing_instance(failures: tuple[SemelError | None, ...]) -> None:
    with pytest.raises(ClusterAuthorizationFailedError):
        await asked(*failures)
