"""Whether the cluster answers: at once where nothing listens, and how long where it is away.

A process that plans asks first which cluster answers. From then on, and in all tasks, only that
cluster will do. A stream waits for it through an outage; a batch gives up when its time is over,
unless its options say that it waits, from its beginning on.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from aiosemel import Security
from aiosemel.errors import (
    InconsistentClusterIdError,
    RequestTimedOutError,
    SemelError,
    TransactionOutcomeUnknownError,
)
from pyspark_semel.connection import Connection, connect, forget
from pyspark_semel.errors import UnreachableError
from pyspark_semel.options import API_TIMEOUT, BOOTSTRAP, MAX_OUTAGE

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

REFUSED_S = 3.0
"""How long all addresses may refuse connections at first; a service restarts faster."""
_CONNECT_TIMEOUT_S = 2.0
"""After which an address that is silent counts as one where something may listen."""
_PAUSE_S = 0.2


class Where(Protocol):
    """The options that say where the cluster is, and how long to wait for it."""

    @property
    def bootstrap(self) -> str:
        """The addresses."""
        ...

    @property
    def security(self) -> Security | None:
        """How to connect."""
        ...

    @property
    def api_timeout_ms(self) -> int:
        """How long a call may take."""
        ...

    @property
    def max_outage_ms(self) -> int | None:
        """How long a cluster that has answered once may be away; None: no longer than a call."""
        ...

    @property
    def waits_at_first(self) -> bool:
        """Whether a cluster may be away as long before its first answer, too."""
        ...


def through_first_outage(where: Where, step: Callable[[], _T]) -> _T:
    """Do the first step with a cluster, and do it again while none answers, if options say so.

    Raises UnreachableError.
    """
    until = time.monotonic() + _patience_ms(where) / 1000
    while True:
        try:
            return step()
        except UnreachableError as error:
            if not where.waits_at_first:
                raise
            if time.monotonic() >= until:
                raise UnreachableError(
                    f"no cluster answers after {_patience_ms(where)} ms, which is the option"
                    f" {MAX_OUTAGE}: {error}"
                ) from error
            _log.warning("the query waits for its cluster: %s", error)


def cluster_id_of(where: Where) -> str:
    """Return the id of the cluster that answers; raises UnreachableError."""
    with unreachable_named(where, waits=False):
        try:
            return _first_answer(where)
        except InconsistentClusterIdError:
            # The process has asked here before, and another cluster has come since.
            forget(_unbound(where))
            return _first_answer(where)


def connect_to(where: Where, cluster_id: str | None) -> Connection:
    """Return this process's connection to a cluster that has answered; no other one will do.

    None: the cluster that answers first.
    """
    return connect(
        where.bootstrap,
        api_timeout_ms=where.api_timeout_ms,
        security=where.security,
        cluster_id=cluster_id,
    )


@contextmanager
def unreachable_named(where: Where, *, waits: bool = True) -> Iterator[None]:
    """Raise UnreachableError for a call that got no answer in time, with the option for that.

    ``waits``: whether it had the time that a stream has.
    """
    try:
        yield
    except SemelError as error:
        if isinstance(error, TransactionOutcomeUnknownError) or not _has_timed_out(error):
            raise
        by_outage = waits and _patience_ms(where) > where.api_timeout_ms
        name = MAX_OUTAGE if by_outage else API_TIMEOUT
        time_ms = _patience_ms(where) if by_outage else where.api_timeout_ms
        raise UnreachableError(
            f"no answer from the cluster at {where.bootstrap} within {time_ms} ms, which is the"
            f" option {name} ({error.message}): see whether {BOOTSTRAP} is right, whether the"
            f" services run, and whether this machine can reach them; raise {name} for longer"
            " outages"
        ) from error


async def through_outages(where: Where, call: Callable[[], Coroutine[object, object, _T]]) -> _T:
    """Do a call again that got no answer in time, for as long as the cluster may be away.

    Only time-outs are an outage: what the cluster answers is raised as ever.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + _patience_ms(where) / 1000
    while True:
        try:
            return await call()
        except RequestTimedOutError as error:
            if loop.time() >= until:
                raise
            _log.warning(
                "no answer from the cluster at %s within %d ms; the query waits: %s",
                where.bootstrap,
                where.api_timeout_ms,
                error,
            )


def _has_timed_out(error: BaseException | None) -> bool:
    """Whether the reason is a time-out; a transaction that fails keeps its reason as its cause."""
    while error is not None:
        if isinstance(error, RequestTimedOutError):
            return True
        error = error.__cause__
    return False


def _patience_ms(where: Where) -> int:
    return max(where.api_timeout_ms, where.max_outage_ms or 0)


def _unbound(where: Where) -> Connection:
    return connect(where.bootstrap, api_timeout_ms=where.api_timeout_ms, security=where.security)


def _first_answer(where: Where) -> str:
    connection = _unbound(where)
    if not connection.has_answered:
        longest_s = min(REFUSED_S, where.api_timeout_ms / 1000)
        connection.call(_check_listening(where.bootstrap, longest_s))
    cluster_id = connection.call(_ask(connection))
    connection.has_answered = True
    return cluster_id


async def _ask(connection: Connection) -> str:
    """Of no topics, the description needs no permission; that of the cluster does."""
    return (await connection.client.admin().describe_topics(())).cluster_id


async def _check_listening(bootstrap: str, longest_s: float) -> None:
    """Raise UnreachableError if every address refuses connections, and goes on to."""
    addresses = [part.strip() for part in bootstrap.split(",") if part.strip()]
    loop = asyncio.get_running_loop()
    until = loop.time() + longest_s
    while True:
        problems = [await _problem(address) for address in addresses]
        refused = [problem for problem in problems if problem is not None]
        if len(refused) < len(addresses):
            return
        if loop.time() >= until:
            raise UnreachableError(
                f"nothing listens at {bootstrap} ({'; '.join(dict.fromkeys(refused))}): see whether"
                f" {BOOTSTRAP} is right, and whether the cluster runs"
            )
        await asyncio.sleep(_PAUSE_S)


async def _problem(address: str) -> str | None:
    """Return why nothing listens at an address; None: something may."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(_CONNECT_TIMEOUT_S):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except TimeoutError:
        return None
    except OSError as error:
        return error.strerror or str(error)
    writer.close()
    return None
