"""Where requests go: the metadata cache, routes to who is in charge, and the one way to retry.

A ``Route`` says where a request goes at this moment, and raises a ``RefreshRetriableError`` when
nobody knows. ``Cluster.call`` sends along a route with Kafka's meaning of the time-outs: one
attempt takes at most ``request_timeout_ms``; a retriable error sends the same request again after a
pause, a refreshing one asks for metadata first; past the caller's deadline, RequestTimedOutError is
raised from the last error.

Refreshes are coalesced: whoever needs one while one is under way shares its answer. They are
limited: no two that ask the same begin within ``retry_backoff_ms``. Who wants a topic that is not
known yet asks for such topics only: what is known already is not paid for again with each.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from random import Random

from aiosemel._metadata import (
    COORDINATOR,
    ClusterMetadata,
    Role,
    TopicMetadata,
    merge,
    without_topic,
)
from aiosemel._names import check_topic_name
from aiosemel._retry import Deadline, pause_ms, pauses_ms
from aiosemel._throttling import ThrottledConnector
from aiosemel.errors import (
    ClosedError,
    ConcurrentTransactionsError,
    CoordinatorNotAvailableError,
    RefreshRetriableError,
    RequestTimedOutError,
    RetriableError,
    UnknownTopicOrPartitionError,
)
from aiosemel.options import ClientOptions
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel_common.ids import TopicPartition
from semel_common.wire.connection import Connection, Connector
from semel_common.wire.methods import METADATA, Method, Req, Res

Route = Callable[[], str]
"""Returns the address, ``host:port``, of who is in charge now, or raises RefreshRetriableError."""

TOPICS_IN_REQUEST = 1_000
"""So many names or ids a coordinator takes in one question for metadata."""
METADATA_PATIENCE_MS = 1_000
"""How long one of several that may be asked for metadata may take, before the next one is asked;
doubled while nobody answers. It is answered from memory, and without it nothing goes on."""
CONCURRENT_TRANSACTIONS_BACKOFF_MS = 20
"""As Kafka's: markers take milliseconds, and then the transaction may go on."""

_log = logging.getLogger(__name__)


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
        self._bootstrap = bootstrap
        self._connector = ThrottledConnector(connector)
        self._options = options
        self._random = random
        self._metadata: ClusterMetadata | None = None
        self._topics_wanted: dict[str, None] = {}
        self._topics_asked: set[str] = set()
        self._refreshed_at: float | None = None
        self._refresh_begun_at: float | None = None
        self._refreshing: asyncio.Future[None] | None = None
        self._refreshing_all = False
        self._asked = 0
        self._patience_ms = METADATA_PATIENCE_MS
        self.closed = False
        """Whether nobody is to be asked any more, because the client is not open."""

    # -- what is known --------------------------------------------------------------------------

    @property
    def options(self) -> ClientOptions:
        """The options of the client."""
        return self._options

    @property
    def metadata(self) -> ClusterMetadata:
        """What is known now; raises CoordinatorNotAvailableError before the first answer."""
        if self._metadata is None:
            raise CoordinatorNotAvailableError("no metadata of the cluster is known yet")
        return self._metadata

    def cached_topic(self, name: str) -> TopicMetadata | None:
        """Return a topic if it is known and not older than ``metadata_max_age_ms``."""
        if self._metadata is None or self.is_old:
            return None
        return self._metadata.topics.get(name)

    async def topic(self, name: str, deadline: Deadline) -> TopicMetadata:
        """Return a topic; asks, and asks again while it is not there, until the deadline.

        Raises UnknownTopicOrPartitionError or InvalidTopicError.
        """
        topic = self.cached_topic(name)
        if topic is None:
            check_topic_name(name)
            try:
                topic = await self._ask_for_topic(name, deadline)
            finally:
                if topic is None:
                    self._topics_wanted.pop(name, None)
        return topic

    async def topics(self, names: Iterable[str], deadline: Deadline) -> None:
        """Get to know topics, all at once; raises what ``topic`` raises for the first of them."""
        unknown = [name for name in names if self.cached_topic(name) is None]
        for name in unknown:
            check_topic_name(name)
        self._topics_wanted |= dict.fromkeys(unknown)
        try:
            for name in unknown:
                await self.topic(name, deadline)  # the first one asks for all
        finally:
            for name in unknown:
                if self.cached_topic(name) is None:
                    self._topics_wanted.pop(name, None)

    async def _ask_for_topic(self, name: str, deadline: Deadline) -> TopicMetadata:
        pauses = self.backoff()
        while (topic := self.cached_topic(name)) is None:
            self._topics_wanted[name] = None
            await self._refresh(deadline, all_topics=self.is_old)
            error = self.metadata.topic_errors.get(name)
            if error is not None and not isinstance(error, RetriableError):
                raise error
            if self.cached_topic(name) is None:
                await self._pause(pauses, deadline, error or _unknown_topic(name))
        return topic

    def is_ahead_of(self, response: cluster.MetadataResponse) -> bool:
        """Whether more is known of this cluster than an answer says."""
        known = self._metadata
        return (
            known is not None
            and known.cluster_id == response.cluster_id
            and known.version > response.version
        )

    def learn(self, response: cluster.MetadataResponse) -> None:
        """Take what was answered to a question for topics; ask for those there are from now on."""
        self._metadata = merge(self._metadata, response)
        for topic in response.topics:
            if topic.HasField("error"):
                self.forget_topic(topic.name)
            else:
                self._topics_wanted[topic.name] = None

    def forget_topic(self, name: str) -> None:
        """Know nothing of a topic, and leave it out of later refreshes."""
        self._topics_wanted.pop(name, None)
        if self._metadata is not None:
            self._metadata = without_topic(self._metadata, name)

    # -- routes ---------------------------------------------------------------------------------

    def coordinator_of(self, transactional_id: str) -> Route:
        """Route to the coordinator of a transactional id."""
        return lambda: self.metadata.coordinator_address(transactional_id)

    def coordinator_of_producer(self, producer_id: int) -> Route:
        """Route to the coordinator that gave out a producer id."""
        return lambda: self.metadata.coordinator_address_of_producer(producer_id)

    def group_coordinator_of(self, group_id: str) -> Route:
        """Route to the coordinator of a group."""
        return lambda: self.metadata.group_coordinator_address(group_id)

    def leader_of(self, topic_partition: TopicPartition) -> Route:
        """Route to the broker that leads a partition."""
        return lambda: self.leader_address(topic_partition)

    def leader_address(self, topic_partition: TopicPartition) -> str:
        """Return where the leader of a partition is; raises a RefreshRetriableError."""
        metadata = self.metadata
        return metadata.broker_address(metadata.leader_of(topic_partition))

    def any_coordinator(self) -> Route:
        """Route to some instance that answers ClusterService: another one at every attempt."""
        return self._next_coordinator

    async def everyone(self, role: Role, deadline: Deadline) -> tuple[Route, ...]:
        """Return a route to each coordinator, or each group coordinator."""
        if self._metadata is None:
            await self.refresh(deadline)
        layout = self.metadata.layout
        count = layout.coordinators if role == COORDINATOR else layout.group_coordinators
        return tuple(partial(self.address_of, role, number) for number in range(count))

    # -- calls ----------------------------------------------------------------------------------

    async def call(
        self,
        route: Route,
        method: Method[Req, Res],
        request: Req,
        *,
        deadline: Deadline,
        request_timeout_ms: int | None = None,
    ) -> Res:
        """Send a request along a route until it is answered; the request must bear repetition.

        ``request_timeout_ms`` is that of one attempt; None: the client's. Raises the error that was
        answered, if it is not retriable; RequestTimedOutError from the last error when the deadline
        passes.
        """
        pauses = self.backoff()
        moved = False
        while True:
            try:
                return await self.attempt(
                    route,
                    method,
                    request,
                    deadline=deadline,
                    request_timeout_ms=request_timeout_ms,
                )
            except RefreshRetriableError as error:
                before = _resolve(route)
                await self.refresh(deadline)
                # Somebody else is in charge now: no need to wait, but only once.
                if moved or _resolve(route) in (None, before):
                    await self._pause(pauses, deadline, error)
                moved = True
            except RetriableError as error:
                await self._pause(pauses, deadline, error)

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
        if self._metadata is None:
            await self.refresh(deadline)
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
        """Send a request to an address once. Raises what ``Connection.call`` raises."""
        longest_ms = request_timeout_ms or self._options.request_timeout_ms
        timeout_ms = min(longest_ms, deadline.remaining_ms())
        if timeout_ms <= 0:
            raise RequestTimedOutError(f"no time is left for {method.name}")
        return await self.connection(address).call(method, request, timeout_ms=timeout_ms)

    def connection(self, address: str) -> Connection:
        """Return the connection to an address, for who retries in a way of its own.

        Raises ClosedError when the client is not open.
        """
        if self.closed:
            raise ClosedError("the client is not open")
        return self._connector.connect(address)

    def random_id(self) -> str:
        """Return an id that nobody else has, for requests that must bear repetition."""
        return f"{self._random.getrandbits(128):032x}"

    def backoff(self) -> Iterator[float]:
        """Yield the pauses between the attempts of one request, in milliseconds."""
        return pauses_ms(self._options, self._random)

    async def pause(self, attempts: int) -> None:
        """Wait as long as is due after so many attempts."""
        await asyncio.sleep(pause_ms(self._options, self._random, attempts) / 1000)

    async def _pause(
        self, pauses: Iterator[float], deadline: Deadline, error: RetriableError
    ) -> None:
        """Wait before the next attempt, or give up now if it would come too late."""
        pause_ms = next(pauses)
        if isinstance(error, ConcurrentTransactionsError):
            pause_ms = min(pause_ms, CONCURRENT_TRANSACTIONS_BACKOFF_MS)
        if pause_ms >= deadline.remaining_ms():
            raise _out_of_time(error) from error
        await asyncio.sleep(pause_ms / 1000)

    async def insist(self, attempt: Callable[[], Awaitable[None]], *, deadline: Deadline) -> None:
        """Make an attempt until it raises nothing retriable; as ``call`` does with requests."""
        pauses = self.backoff()
        while True:
            try:
                return await attempt()
            except RetriableError as error:
                await self._pause(pauses, deadline, error)

    # -- refreshing -----------------------------------------------------------------------------

    async def refresh(self, deadline: Deadline) -> None:
        """Ask for metadata once, or share the answer of a request under way.

        Tries every address that is known. Raises RequestTimedOutError at the deadline; until then
        it goes on, for without metadata there is nothing else to do.
        """
        await self._refresh(deadline, all_topics=True)

    async def _refresh(self, deadline: Deadline, *, all_topics: bool) -> None:
        """Ask for all topics that are wanted, or for those that are not known."""
        pauses = self.backoff()
        while True:
            under_way, suffices = self._refreshing, self._refreshing_all or not all_topics
            if under_way is None:
                if await self._refresh_now(pauses, deadline, all_topics=all_topics):
                    return
            elif await _settled(under_way, deadline) and suffices:
                return

    async def _refresh_now(
        self, pauses: Iterator[float], deadline: Deadline, *, all_topics: bool
    ) -> bool:
        shared = self._refreshing = asyncio.get_running_loop().create_future()
        self._refreshing_all = all_topics
        succeeded = False
        try:
            await self._wait_for_turn(deadline)
            succeeded = await self._ask_everyone(pauses, deadline, all_topics=all_topics)
        finally:
            self._refreshing = None
            if succeeded:
                shared.set_result(None)
            else:
                shared.cancel()
        return succeeded

    async def _wait_for_turn(self, deadline: Deadline) -> None:
        """Leave a pause since the last refresh, unless a topic was never asked for."""
        now = asyncio.get_running_loop().time()
        asks_the_same = self._topics_wanted.keys() <= self._topics_asked
        if self._refresh_begun_at is not None and self._metadata is not None and asks_the_same:
            turn = self._refresh_begun_at + self._options.retry_backoff_ms / 1000
            if turn > now:
                await asyncio.sleep(min(turn - now, deadline.remaining_ms() / 1000))
        self._refresh_begun_at = asyncio.get_running_loop().time()

    async def _ask_everyone(
        self, pauses: Iterator[float], deadline: Deadline, *, all_topics: bool
    ) -> bool:
        self._topics_asked = set(self._topics_wanted)
        known = {} if all_topics or self._metadata is None else self._metadata.topics
        names = [name for name in self._topics_wanted if name not in known]
        last: RetriableError = _nobody_answers(self._bootstrap)
        addresses = self._cluster_addresses()
        # One that hangs must not keep the others from being asked.
        longest_ms = self._options.request_timeout_ms / len(addresses)
        patience_ms = longest_ms if len(addresses) == 1 else min(longest_ms, self._patience_ms)
        for _ in addresses:
            attempt_deadline = min(deadline, Deadline.after_ms(patience_ms), key=lambda d: d.at)
            try:
                await self._ask_one(self._next_coordinator(), names, attempt_deadline)
            except RetriableError as error:
                last = error
                _log.debug("metadata not answered: %s", error)
                continue
            if all_topics:
                self._refreshed_at = asyncio.get_running_loop().time()
            self._patience_ms = METADATA_PATIENCE_MS
            return True
        self._patience_ms = min(2 * self._patience_ms, self._options.request_timeout_ms)
        await self._pause(pauses, deadline, last)
        return False

    async def _ask_one(self, address: str, names: list[str], deadline: Deadline) -> None:
        """Ask an instance for topics, and at least for the instances."""
        for start in range(0, max(1, len(names)), TOPICS_IN_REQUEST):
            request = cluster.MetadataRequest(topics=names[start : start + TOPICS_IN_REQUEST])
            response = await self.attempt_at(address, METADATA, request, deadline=deadline)
            self._metadata = merge(self._metadata, response)

    @property
    def is_old(self) -> bool:
        """Whether metadata is older than ``metadata_max_age_ms``, or not there at all."""
        if self._refreshed_at is None:
            return True
        age = asyncio.get_running_loop().time() - self._refreshed_at
        return age * 1000 > self._options.metadata_max_age_ms

    def _cluster_addresses(self) -> tuple[str, ...]:
        known = self._metadata.addresses_of(COORDINATOR) if self._metadata is not None else ()
        return (*known, *(address for address in self._bootstrap if address not in known))

    def address_of(self, role: Role, instance_id: int) -> str:
        """Return where an instance is; raises CoordinatorNotAvailableError."""
        return self.metadata.instance_address(role, instance_id)

    def _next_coordinator(self) -> str:
        addresses = self._cluster_addresses()
        self._asked += 1
        return addresses[(self._asked - 1) % len(addresses)]


async def _settled(shared: "asyncio.Future[None]", deadline: Deadline) -> bool:
    """Wait for another's refresh; False if it came to nothing, so that someone else must try."""
    remaining = deadline.remaining_ms() / 1000
    done, _ = await asyncio.wait([shared], timeout=remaining)
    if not done:
        raise RequestTimedOutError("metadata was not answered in time")
    return not shared.cancelled()


def _resolve(route: Route) -> str | None:
    try:
        return route()
    except RefreshRetriableError:
        return None


def _unknown_topic(name: str) -> UnknownTopicOrPartitionError:
    return UnknownTopicOrPartitionError(f"topic {name} is not known")


def _nobody_answers(addresses: tuple[str, ...]) -> CoordinatorNotAvailableError:
    return CoordinatorNotAvailableError(f"nobody answers at {', '.join(addresses)}")


def _out_of_time(error: RetriableError) -> RetriableError:
    """Return what to raise when a retriable error can no longer be retried."""
    if isinstance(error, UnknownTopicOrPartitionError | RequestTimedOutError):
        return type(error)(error.message, **error.details)
    return RequestTimedOutError(f"not done in time: {error.message}", **error.details)
