"""Routes of requests to the instance in charge, and the one way to retry.

A ``Route`` returns the present target of a request, and raises a ``RefreshRetriableError`` if the
target is unknown. ``Cluster.call`` sends along a route with Kafka's meaning of the time-outs: one
attempt takes at most ``request_timeout_ms``; after a retriable error the same request goes again
after a pause; after a refreshing error the client asks for metadata first (``_refreshing``); past
the caller's deadline, the call raises RequestTimedOutError from the last error. An error that time
does not heal, such as an invalid answer, is tried a few times only (``_retry``).
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random

from google.protobuf.message import Message

from aiosemel._answers.connector import CheckedConnector
from aiosemel._cluster.coordinators import UNREACHABLE
from aiosemel._cluster.identity import ClusterIdentity
from aiosemel._cluster.last_error import Trouble
from aiosemel._cluster.metadata import ROLES, Role
from aiosemel._cluster.metadata_cache import MetadataCache
from aiosemel._cluster.retry import (
    ADDRESS,
    Deadline,
    Pauses,
    out_of_time,
    pause_before_repeat,
    pause_ms,
)
from aiosemel._cluster.throttling import ThrottledConnector
from aiosemel._shared.process_and_loop import Home
from aiosemel.errors import (
    ClosedError,
    InconsistentClusterIdError,
    RefreshRetriableError,
    RequestTimedOutError,
    RetriableError,
)
from aiosemel.options.client_options import ClientOptions
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel_common.ids import TopicPartition
from semel_common.wire.connection import Connection, Connector
from semel_common.wire.messages.message_pieces import Outgoing
from semel_common.wire.methods import METADATA, Method, Req, Res

Route = Callable[[], str]
"""Returns the address ``host:port`` of the instance in charge, or raises RefreshRetriableError."""


class Cluster:
    """One cluster, as one client sees it; shared by its producers, consumers and admin."""

    def __init__(
        self,
        bootstrap: tuple[str, ...],
        connector: Connector,
        options: ClientOptions,
        random: Random,
    ) -> None:
        """Take the addresses to begin with; the first request does the first I/O."""
        self._connector = ThrottledConnector(CheckedConnector(connector))
        self._options = options
        self._random = random
        self.home = Home()
        """The process and the event loop that may use it."""
        self.identity = ClusterIdentity(options.cluster_id)
        """Which cluster it is; every call names it."""
        self.cache = MetadataCache(
            bootstrap, options, random, self._ask_for_metadata, self.identity, self.home
        )
        """The metadata of the cluster, kept fresh."""
        self.trouble = Trouble()
        """The last error of a call, for texts of time-outs."""
        self.closed = False
        """Whether no instance may be asked any more, because the client is not open."""

    @property
    def options(self) -> ClientOptions:
        """The options of the client."""
        return self._options

    async def check_belongs(self, cluster_id: str, what: str, deadline: Deadline) -> None:
        """Raise InconsistentClusterIdError for a thing of another cluster; empty: of any.

        Asks for metadata first if the client does not know its cluster yet.
        """
        if cluster_id and not self.identity.cluster_id:
            await self.cache.refresh(deadline)
        self.identity.check_belongs(cluster_id, what)

    # -- routes ---------------------------------------------------------------------------------

    def coordinator_of(self, transactional_id: str) -> Route:
        """Route to the coordinator of a transactional id."""
        return lambda: self.cache.metadata.coordinator_address(transactional_id)

    def coordinator_of_producer(self, producer_id: int) -> Route:
        """Route to the coordinator that gave out a producer id."""
        return lambda: self.cache.metadata.coordinator_address_of_producer(producer_id)

    def group_coordinator_of(self, group_id: str) -> Route:
        """Route to the coordinator of a group."""
        return lambda: self.cache.metadata.group_coordinator_address(group_id)

    def leader_of(self, topic_partition: TopicPartition) -> Route:
        """Route to the broker that leads a partition."""
        return lambda: self.leader_address(topic_partition)

    def leader_address(self, topic_partition: TopicPartition) -> str:
        """Return where the leader of a partition is; raises a RefreshRetriableError."""
        metadata = self.cache.metadata
        return metadata.broker_address(metadata.leader_of(topic_partition))

    def any_coordinator(self) -> Route:
        """Route to some instance that answers ClusterService: another one at every attempt."""
        return self.cache.coordinators.next

    async def everyone(self, role: Role, deadline: Deadline) -> dict[str, Route]:
        """Return a route to each coordinator, or each group coordinator, by its name."""
        await self.cache.refresh_if_due(deadline)
        numbers = self.cache.metadata.instance_ids(role)
        return {
            f"{ROLES[role]}-{number}": partial(self.address_of, role, number) for number in numbers
        }

    def address_of(self, role: Role, instance_id: int) -> str:
        """Return where an instance is; raises CoordinatorNotAvailableError."""
        return self.cache.metadata.instance_address(role, instance_id)

    # -- calls ----------------------------------------------------------------------------------

    async def call(
        self,
        route: Route,
        method: Method[Req, Res],
        request: Req,
        *,
        deadline: Deadline,
        request_timeout_ms: int | None = None,
        check: Callable[[Res], None] | None = None,
    ) -> Res:
        """Send a request along a route until it is answered; the request must bear repetition.

        ``request_timeout_ms`` is that of one attempt; None: the client's. ``check`` raises the
        error that the answer has for the one thing that was asked for. Raises the error that was
        answered, if it is not retriable; RequestTimedOutError from the last error when the deadline
        passes.
        """
        self.home.check()
        pauses = self.backoff()
        moved = False
        while True:
            if not self.cache.is_anything:
                await self.cache.refresh(deadline)
            try:
                answer = await self.attempt(
                    route,
                    method,
                    request,
                    deadline=deadline,
                    request_timeout_ms=request_timeout_ms,
                )
                if check is not None:
                    check(answer)
                return answer
            except RefreshRetriableError as error:
                before = _resolve(route)
                await self.refresh_after(error, deadline)
                # Another instance is in charge now: the call need not wait, but only once.
                if moved or _resolve(route) in (None, before):
                    await pause_before_repeat(pauses, deadline, error)
                moved = True
            except RetriableError as error:
                await pause_before_repeat(pauses, deadline, error)

    async def refresh_after(self, error: RefreshRetriableError, deadline: Deadline) -> None:
        """Ask for metadata after an error. Raises the error if too little time is left for that."""
        try:
            await self.cache.refresh(deadline)
        except RequestTimedOutError as late:
            if self.cache.failures.last is not None:
                raise  # No coordinator answers, and that keeps the call from going on.
            raise out_of_time(error) from late

    async def attempt(
        self,
        route: Route,
        method: Method[Req, Res],
        request: Req,
        *,
        deadline: Deadline,
        request_timeout_ms: int | None = None,
    ) -> Res:
        """Send a request along a route once. Raises what ``Connection.call`` raises."""
        if not self.cache.is_usable:
            await self.cache.refresh(deadline)
        return await self.attempt_at(
            route(), method, request, deadline=deadline, request_timeout_ms=request_timeout_ms
        )

    async def attempt_at(
        self,
        address: str,
        method: Method[Req, Res],
        request: Req,
        *,
        deadline: Deadline,
        request_timeout_ms: int | None = None,
    ) -> Res:
        """Send a request to an address once. Raises what ``send`` raises."""
        timeout_ms = self._timeout_ms(address, method, deadline, request_timeout_ms)
        return await self.send(address, method, request, timeout_ms=timeout_ms)

    async def send(
        self, address: str, method: Method[Req, Res], request: Outgoing[Req], *, timeout_ms: int
    ) -> Res:
        """Send a request to an address once, for callers that retry in a way of their own.

        Raises what ``Connection.call`` raises; BrokerNotAvailableError when the service there
        belongs to another cluster: then metadata says where to send it. Raises
        InconsistentClusterIdError when the client has ended, ClosedError when it is not open.
        """
        connection = self._connection(address)
        coordinators = self.cache.coordinators
        try:
            response = await connection.call(
                method, request, timeout_ms=timeout_ms, cluster_id=self.identity.cluster_id
            )
        except InconsistentClusterIdError as error:
            raise self.identity.misled(error, address) from error
        except RetriableError as error:
            self._note(error, address)
            raise
        coordinators.answered(address)
        self.trouble.answered(address)
        return response

    async def _ask_for_metadata(
        self, address: str, request: cluster.MetadataRequest, deadline: Deadline
    ) -> cluster.MetadataResponse:
        """Ask once. Raises InconsistentClusterIdError for the metadata of another cluster."""
        timeout_ms = self._timeout_ms(address, METADATA, deadline, None)
        connection = self._connection(address)
        coordinators = self.cache.coordinators
        try:
            response = await connection.call(
                METADATA, request, timeout_ms=timeout_ms, cluster_id=self.identity.cluster_id
            )
        except InconsistentClusterIdError as error:
            raise self.identity.refused(error, address) from error
        except RetriableError as error:
            self._note(error, address)
            raise
        coordinators.answered(address)
        self.trouble.answered(address)
        self.identity.learn(response.cluster_id, address)
        return response

    def _note(self, error: RetriableError, address: str) -> None:
        """Keep in mind that a call to an address has failed."""
        error.details.setdefault(ADDRESS, address)
        self.trouble.failed(error, address)
        if isinstance(error, UNREACHABLE):
            self.cache.coordinators.failed(address)

    def _timeout_ms(
        self,
        address: str,
        method: Method[Message, Message],
        deadline: Deadline,
        request_timeout_ms: int | None,
    ) -> int:
        longest_ms = request_timeout_ms or self._options.request_timeout_ms
        timeout_ms = min(longest_ms, deadline.remaining_ms())
        if timeout_ms <= 0:
            raise RequestTimedOutError(
                f"no time is left for {method.name} at {address}{self.trouble.suffix}"
            )
        return timeout_ms

    def _connection(self, address: str) -> Connection:
        if self.closed:
            raise ClosedError("the client is not open")
        self.identity.check()
        return self._connector.connect(address)

    def random_id(self) -> str:
        """Return a unique id, for requests that may be repeated."""
        return f"{self._random.getrandbits(128):032x}"

    def backoff(self) -> Pauses:
        """Return the pauses between the attempts of one request, in milliseconds."""
        return Pauses(self._options, self._random)

    async def pause(self, attempts: int) -> None:
        """Wait as long as is due after so many attempts."""
        await asyncio.sleep(pause_ms(self._options, self._random, attempts) / 1000)

    async def insist(self, attempt: Callable[[], Awaitable[None]], *, deadline: Deadline) -> None:
        """Make an attempt until it raises nothing retriable; as ``call`` does with requests."""
        pauses = self.backoff()
        while True:
            try:
                return await attempt()
            except RetriableError as error:
                await pause_before_repeat(pauses, deadline, error)


def _resolve(route: Route) -> str | None:
    try:
        return route()
    except RefreshRetriableError:
        return None
