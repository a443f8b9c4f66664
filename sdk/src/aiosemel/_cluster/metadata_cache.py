"""The metadata cache: the metadata of a cluster, and the refreshes that keep them fresh.

Callers that need a refresh while one is under way share its answer. Refreshes are limited: no two
with the same question begin within ``retry_backoff_ms``. A caller that wants an unknown topic asks
for unknown topics only, so it does not pay for the known ones again. It waits for the topic, which
another client may create meanwhile, so it does not need the controller's word that the topic does
not exist now; ``admin`` does not wait, and asks for that word.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable
from random import Random

from aiosemel._cluster.coordinators import Coordinators, are_wrong_services, unreachable
from aiosemel._cluster.failures import Failures
from aiosemel._cluster.identity import ClusterIdentity
from aiosemel._cluster.metadata import (
    COORDINATOR,
    ClusterMetadata,
    TopicMetadata,
    merge,
    without_topic,
)
from aiosemel._cluster.retry import Deadline, Pauses, out_of_time, pause_before_repeat
from aiosemel._shared.name_checks import check_topic_name
from aiosemel._shared.process_and_loop import Home
from aiosemel.errors import (
    CoordinatorNotAvailableError,
    InconsistentClusterIdError,
    RequestTimedOutError,
    RetriableError,
    UnknownTopicOrPartitionError,
)
from aiosemel.options.client_options import ClientOptions
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel_common.library_log import get_logger
from semel_common.wire import status

Ask = Callable[[str, cluster.MetadataRequest, Deadline], Awaitable[cluster.MetadataResponse]]
"""Asks the instance at an address for metadata, once."""

TOPICS_IN_PAGE = 1_000
"""How many topics one page of all topics has."""
TOPICS_IN_REQUEST = 1_000
"""So many names or ids a coordinator takes in one question for metadata."""
METADATA_PATIENCE_MS = 1_000
"""How long one of several that may be asked for metadata may take, before the next one is asked;
doubled while no service answers. It is answered from memory, and without it nothing goes on."""
TOPIC_QUIET_MS = 1_000
"""How long a topic that is not there is waited for in silence: one that was just made soon is."""

_log = get_logger(__name__)


class MetadataCache:
    """The metadata of one client, which asks for it when it has to."""

    def __init__(
        self,
        bootstrap: tuple[str, ...],
        options: ClientOptions,
        random: Random,
        ask: Ask,
        identity: ClusterIdentity,
        home: Home,
    ) -> None:
        """Take the addresses to begin with; the first question does the first I/O."""
        self.coordinators = Coordinators(bootstrap)
        """Whom to ask."""
        self._options = options
        self._random = random
        self._ask = ask
        self._identity = identity
        self._home = home
        self._metadata: ClusterMetadata | None = None
        self._topics_wanted: dict[str, None] = {}
        self._topics_asked: set[str] = set()
        self._topics_answered: set[str] = set()
        """The topics that the last refresh has asked for."""
        self._refreshed_at: float | None = None
        self._refresh_begun_at: float | None = None
        self._refreshing: asyncio.Future[None] | None = None
        self._refreshing_all = False
        self._is_doubted = False
        self._patience_ms = METADATA_PATIENCE_MS
        self._strangers = Failures()
        self.failures = Failures()
        """The last error of a round over all instances that may answer."""
        self._absent: dict[str, Failures] = {}
        """Of finding each topic that is waited for, shared by all that wait for it."""

    # -- metadata ---------------------------------------------------------------------------------

    @property
    def is_anything(self) -> bool:
        """Whether anything was answered yet."""
        return self._metadata is not None

    @property
    def is_usable(self) -> bool:
        """Whether there is metadata, and no doubt of it."""
        return self._metadata is not None and not self._is_doubted

    def doubt(self) -> None:
        """Ask again before the next call.

        For a caller that gives up when an instance has not answered: another may be in charge now.
        """
        self._is_doubted = True

    @property
    def metadata(self) -> ClusterMetadata:
        """The present metadata; raises CoordinatorNotAvailableError before the first answer."""
        if self._metadata is None:
            raise CoordinatorNotAvailableError("no metadata of the cluster is known yet")
        return self._metadata

    def cached_topic(self, name: str) -> TopicMetadata | None:
        """Return a topic if it is known and not older than ``metadata_max_age_ms``."""
        if self._metadata is None or self.is_old:
            return None
        return self._metadata.topics.get(name)

    async def topic(self, name: str, deadline: Deadline, *, waits: bool = True) -> TopicMetadata:
        """Return a topic; asks, and asks again while it is not there, until the deadline.

        ``waits``: whether for a topic of which the controller knows nothing, too. Raises
        UnknownTopicOrPartitionError, InvalidTopicError, or TopicNotFoundError if it does not wait.
        """
        self._home.check()
        topic = self.cached_topic(name)
        if topic is None:
            check_topic_name(name)
            try:
                topic = await self._ask_for_topic(name, deadline, waits=waits)
            finally:
                self._absent.pop(name, None)
                if topic is None:
                    self._topics_wanted.pop(name, None)
        return topic

    async def topics(self, names: Iterable[str], deadline: Deadline) -> None:
        """Get to know topics, all at once; raises what ``topic`` raises for the first of them."""
        self._home.check()
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

    def _backoff(self) -> Pauses:
        return Pauses(self._options, self._random, is_told=True)

    async def _ask_for_topic(self, name: str, deadline: Deadline, *, waits: bool) -> TopicMetadata:
        pauses = self._backoff()
        absent = self._absent.setdefault(name, Failures(quiet_ms=TOPIC_QUIET_MS))
        last: RetriableError | None = None
        while (topic := self.cached_topic(name)) is None:
            self._topics_wanted[name] = None
            try:
                await self._refresh(deadline, all_topics=self.is_old)
            except RequestTimedOutError as late:
                # Time was up before its turn to ask again: the last answer counts.
                if last is None or self.failures.last is not None:
                    raise
                raise out_of_time(last) from late
            error = self.metadata.topic_errors.get(name)
            if error is not None and not isinstance(error, RetriableError):
                raise error
            # A request that was shared may have gone out before anybody wanted this topic.
            if self.cached_topic(name) is None and name in self._topics_answered:
                last = error or _unknown_topic(name)
                if not waits:
                    await self._check_exists(name, deadline)
                _log.log(absent.failed(last), "waiting for topic %s: %s", name, last)
                await pause_before_repeat(pauses, deadline, last)
        return topic

    async def _check_exists(self, name: str, deadline: Deadline) -> None:
        """Raise TopicNotFoundError if the controller knows no such topic."""
        request = cluster.MetadataRequest(topics=[name], from_controller=True)
        try:
            response = await self._ask(self.coordinators.round()[0], request, deadline)
        except RetriableError as error:
            _log.debug("the controller did not say whether topic %s exists: %s", name, error)
            return
        for topic in response.topics:
            refusal = status.from_value(topic.error)
            if topic.HasField("error") and not isinstance(refusal, RetriableError):
                refusal.details.setdefault("topic", name)
                raise refusal

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
        self._take(response)
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

    # -- refreshing -----------------------------------------------------------------------------

    async def refresh(self, deadline: Deadline) -> None:
        """Ask for metadata once, or share the answer of a request under way.

        Tries every address that is known. Raises RequestTimedOutError at the deadline; until then
        it goes on, for without metadata there is nothing else to do. Raises InvalidResponseError at
        once if each bootstrap address is that of another service. Raises
        InconsistentClusterIdError, and ends the client, when another cluster answers.
        """
        self._home.check()
        await self._refresh(deadline, all_topics=True)

    async def refresh_if_due(self, deadline: Deadline) -> None:
        """Refresh, unless the metadata are so new that a refresh would wait for its turn."""
        if self._is_doubted or self._age_ms() >= self._options.retry_backoff_ms:
            await self.refresh(deadline)

    async def _refresh(self, deadline: Deadline, *, all_topics: bool) -> None:
        """Ask for all wanted topics, or for the unknown ones."""
        pauses = self._backoff()
        while True:
            self._identity.check()
            under_way, suffices = self._refreshing, self._refreshing_all or not all_topics
            if under_way is None:
                if await self._refresh_now(pauses, deadline, all_topics=all_topics):
                    return
            elif await self._settled(under_way, deadline) and suffices:
                return

    async def _refresh_now(self, pauses: Pauses, deadline: Deadline, *, all_topics: bool) -> bool:
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

    async def _settled(self, shared: "asyncio.Future[None]", deadline: Deadline) -> bool:
        """Wait for another's refresh; False if it failed, so that its waiters must try."""
        done, _ = await asyncio.wait([shared], timeout=deadline.remaining_ms() / 1000)
        if not done:
            last = self.failures.last
            raise RequestTimedOutError(
                "no instance answered with metadata in time"
                + ("" if last is None else f"; last error: {last.message}")
            )
        return not shared.cancelled()

    async def _wait_for_turn(self, deadline: Deadline) -> None:
        """Leave a pause since the last refresh, unless a topic was never asked for."""
        now = asyncio.get_running_loop().time()
        asks_the_same = self._topics_wanted.keys() <= self._topics_asked
        if self._refresh_begun_at is not None and self._metadata is not None and asks_the_same:
            turn = self._refresh_begun_at + self._options.retry_backoff_ms / 1000
            if turn > now:
                await asyncio.sleep(min(turn - now, deadline.remaining_ms() / 1000))
        self._refresh_begun_at = asyncio.get_running_loop().time()

    async def _ask_everyone(self, pauses: Pauses, deadline: Deadline, *, all_topics: bool) -> bool:
        self._topics_asked = set(self._topics_wanted)
        known = {} if all_topics or self._metadata is None else self._metadata.topics
        names = [name for name in self._topics_wanted if name not in known]
        refusals: list[RetriableError] = []
        another: InconsistentClusterIdError | None = None
        is_late = deadline.remaining_ms() < METADATA_PATIENCE_MS
        addresses = self.coordinators.round()
        # One that hangs must not keep the others from being asked.
        longest_ms = self._options.request_timeout_ms / len(addresses)
        patience_ms = longest_ms if len(addresses) == 1 else min(longest_ms, self._patience_ms)
        for address in addresses:
            attempt_deadline = min(deadline, Deadline.after_ms(patience_ms), key=lambda d: d.at)
            try:
                await self._ask_one(address, names, attempt_deadline)
            except InconsistentClusterIdError as error:
                another = error  # Its address may have been an instance of this cluster before.
                continue
            except RetriableError as error:
                refusals.append(error)
                _log.debug("metadata not answered: %s", error)
                continue
            if all_topics:
                self._refreshed_at = asyncio.get_running_loop().time()
            self._is_doubted = False
            self._topics_answered = set(names)
            self.failures.succeeded()
            self._patience_ms = METADATA_PATIENCE_MS
            if another is not None:
                _log.log(self._strangers.failed(another), "an address is left out: %s", another)
            return True
        if another is not None:
            self._identity.end_with(another)
            raise another
        last = unreachable(refusals, is_first=not self.is_anything)
        if not self.is_anything and are_wrong_services(refusals):
            raise last
        # That error concerns none of the instances that were asked.
        if is_late and deadline.passed:
            raise out_of_time(last) from last
        where = ", ".join(addresses)
        _log.log(self.failures.failed(last), "no metadata from %s, still trying: %s", where, last)
        self._patience_ms = min(2 * self._patience_ms, self._options.request_timeout_ms)
        await pause_before_repeat(pauses, deadline, last)
        return False

    async def _ask_one(self, address: str, names: list[str], deadline: Deadline) -> None:
        """Ask an instance for topics, and at least for the instances."""
        for start in range(0, max(1, len(names)), TOPICS_IN_REQUEST):
            request = cluster.MetadataRequest(topics=names[start : start + TOPICS_IN_REQUEST])
            response = await self._ask(address, request, deadline)
            self._take(response)

    def _take(self, response: cluster.MetadataResponse) -> None:
        self._metadata = merge(self._metadata, response)
        self.coordinators.know(self._metadata.addresses_of(COORDINATOR))

    def was_just_asked_for(self, name: str, partition: int) -> bool:
        """Whether a partition is known from a refresh that need not be repeated yet."""
        topic = self.cached_topic(name)
        if topic is None or name not in self._topics_answered or self._refresh_begun_at is None:
            return False
        age = asyncio.get_running_loop().time() - self._refresh_begun_at
        is_there = 0 <= partition < len(topic.partitions)
        return is_there and age * 1000 < self._options.retry_backoff_ms

    @property
    def is_old(self) -> bool:
        """Whether metadata is older than ``metadata_max_age_ms``, or not there at all."""
        return self._age_ms() > self._options.metadata_max_age_ms

    def _age_ms(self) -> float:
        """Return the time since the last refresh of all topics; infinite without one."""
        if self._refreshed_at is None:
            return math.inf
        return (asyncio.get_running_loop().time() - self._refreshed_at) * 1000


def _unknown_topic(name: str) -> UnknownTopicOrPartitionError:
    return UnknownTopicOrPartitionError(f"topic {name} is not known")
