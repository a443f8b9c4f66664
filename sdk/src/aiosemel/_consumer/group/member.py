"""Heartbeats: sends what ``Membership`` has to say, for as long as the consumer is open."""

import asyncio
from collections.abc import Iterator

from aiosemel._cluster.failures import Failures
from aiosemel._cluster.permanent_errors import Unhealed
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel._consumer.group.membership import (
    Heartbeat,
    HeartbeatAnswer,
    Membership,
    MemberState,
    TopicIdPartition,
)
from aiosemel._shared.change_signal import Signal
from aiosemel.errors import (
    RefreshRetriableError,
    RetriableError,
    SemelError,
    UnknownMemberIdError,
)
from aiosemel.options.consumer_options import ConsumerOptions
from aiosemel.types.offsets import ConsumerGroupMetadata
from semel.common.v1 import participants_pb2 as participants
from semel.group.v1 import group_pb2 as group
from semel_common.library_log import get_logger
from semel_common.wire.methods import CONSUMER_GROUP_HEARTBEAT

_log = get_logger(__name__)
_HEARTBEAT_TIMEOUT_MIN_MS = 1_000


class GroupMember:
    """The voice of one member of one group."""

    def __init__(
        self,
        cluster: Cluster,
        group_id: str,
        member_id: str,
        options: ConsumerOptions,
        arrived: Signal,
    ) -> None:
        """Say nothing yet. ``arrived`` is told of every answer: it may be one to reconcile to."""
        self.membership = Membership(
            member_id,
            options.group_instance_id,
            leaves_for_good=options.leave_group_on_close,
        )
        self._cluster = cluster
        self._group_id = group_id
        self._options = options
        self._arrived = arrived
        self._changed = Signal()
        self._at_once = False
        self._answers = 0
        self._polled_at: float | None = None
        """When the user left ``poll``; None: the user is in it, or never was."""
        self._has_polled = False
        self._pauses: Iterator[float] | None = None
        self._failures = Failures()
        self._unhealed = Unhealed()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return who commits."""
        return ConsumerGroupMetadata(
            group_id=self._group_id,
            member_id=self.membership.member_id,
            member_epoch=self.membership.member_epoch,
        )

    def check_not_lost(self) -> None:
        """Raise why the partitions are lost, while the member has not let go of them."""
        if self.membership.state is MemberState.STALE:
            raise UnknownMemberIdError(
                f"group {self._group_id!r}: the consumer left, because it did not poll for "
                f"{self._options.max_poll_interval_ms} ms (max_poll_interval_ms)"
            )
        if self.membership.must_let_go and self.membership.error is not None:
            raise self.membership.error.again()

    def check_reachable(self) -> None:
        """Raise, once, why no heartbeat arrives, if no time heals that. Heartbeats go on."""
        error = self._unhealed.take()
        if error is not None:
            raise error

    # -- what the user does ----------------------------------------------------------------------

    def look(self) -> None:
        """Look again at what there is to say."""
        self._changed.notify()

    def polling(self) -> None:
        """Note that the user is in ``poll``, and so not overdue."""
        self._polled_at, self._has_polled = None, True

    def polled(self) -> None:
        """Note that the user has left ``poll``: from now on it may become overdue."""
        self._polled_at = asyncio.get_running_loop().time()

    # -- heartbeats ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Send heartbeats until cancelled."""
        while True:
            await self._wait_until_due()
            if self.membership.heartbeat_due or self.membership.heartbeats:
                await self._exchange(self.membership.next_heartbeat())

    async def leave(self, deadline: Deadline) -> None:
        """Leave the group, after ``run``. If the message is lost, the session times out by itself.

        A member that was never answered sends the message once, and does not send it if no instance
        of the cluster was ever found.
        """
        self.membership.leave()
        if self.membership.heartbeat_due and self._cluster.cache.is_anything:
            heartbeat = self.membership.next_heartbeat()
            try:
                answer = await self._send(heartbeat, deadline, retries=self._answers > 0)
                self.membership.answered(heartbeat, answer)
            except SemelError as error:
                _log.debug("leaving group %s failed: %s", self._group_id, error)
                self.membership.failed(heartbeat, error)
                if isinstance(error, RefreshRetriableError):
                    self._cluster.cache.doubt()  # The client's next member would ask there, too.

    async def ask_again(self, deadline: Deadline) -> bool:
        """Send a heartbeat now; returns whether its answer brought a newer epoch, in time."""
        epoch, answers = self.membership.member_epoch, self._answers
        while self._answers == answers and self.membership.heartbeats:
            self._at_once = True
            self.look()
            if not await self._arrived.wait(deadline.remaining_ms()):
                return False
        return self.membership.heartbeats and self.membership.member_epoch > epoch

    def request(self, heartbeat: Heartbeat) -> group.ConsumerGroupHeartbeatRequest:
        """Return a heartbeat as a message."""
        request = group.ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self.membership.member_id,
            member_epoch=heartbeat.member_epoch,
            instance_id=self.membership.instance_id,
            takes_over=heartbeat.takes_over,
        )
        if self._has_polled:
            request.poll_age_ms = self._poll_age_ms()
        if heartbeat.full:
            request.rebalance_timeout_ms = self._options.max_poll_interval_ms
            request.server_assignor = self._options.server_assignor
        if heartbeat.topics is not None:
            request.subscription.CopyFrom(group.Subscription(topics=heartbeat.topics))
        if heartbeat.owned is not None:
            request.owned.CopyFrom(_owned(heartbeat.owned))
        return request

    async def _wait_until_due(self) -> None:
        """Wait for something to say, or for the interval to be over."""
        loop = asyncio.get_running_loop()
        next_at = loop.time() + self.membership.heartbeat_interval_ms / 1000
        while not (self.membership.heartbeat_due or (self._at_once and self.membership.heartbeats)):
            overdue_in_ms = self._overdue_in_ms()
            if overdue_in_ms is not None and overdue_in_ms <= 0:
                _log.warning("no poll for %s ms: leaving", self._options.max_poll_interval_ms)
                self.membership.overdue()
                self._arrived.notify()
                continue
            waits = [overdue_in_ms] if overdue_in_ms is not None else []
            if self.membership.heartbeats:
                waits.append((next_at - loop.time()) * 1000)
            if not await self._changed.wait(min(waits, default=None)) and loop.time() >= next_at:
                return

    def _overdue_in_ms(self) -> float | None:
        if self._polled_at is None or not self.membership.heartbeats:
            return None
        return self._options.max_poll_interval_ms - self._poll_age_ms()

    def _poll_age_ms(self) -> int:
        """Return how long ago the user left ``poll``; 0 within it."""
        if self._polled_at is None:
            return 0
        return round((asyncio.get_running_loop().time() - self._polled_at) * 1000)

    async def _exchange(self, heartbeat: Heartbeat) -> None:
        """Send one heartbeat; pauses when it had no answer."""
        self._at_once = False
        interval_ms = self.membership.heartbeat_interval_ms
        deadline = Deadline.after_ms(max(2 * interval_ms, _HEARTBEAT_TIMEOUT_MIN_MS))
        try:
            answer = await self._send(heartbeat, deadline, retries=False)
        except SemelError as error:
            self._unhealed.failed(error)
            self.membership.failed(heartbeat, error)
            self._arrived.notify()
            if self.membership.heartbeats:
                await self._recover(error)
            else:
                _log.warning("group %s refused a heartbeat: %s", self._group_id, error)
        else:
            self._pauses = None
            self._failures.succeeded()
            self._unhealed.succeeded()
            self._answers += 1
            self.membership.answered(heartbeat, answer)
            self._arrived.notify()

    async def _send(
        self, heartbeat: Heartbeat, deadline: Deadline, *, retries: bool
    ) -> HeartbeatAnswer:
        send = self._cluster.call if retries else self._cluster.attempt
        response = await send(
            self._cluster.group_coordinator_of(self._group_id),
            CONSUMER_GROUP_HEARTBEAT,
            self.request(heartbeat),
            deadline=deadline,
        )
        return answer_of(response)

    async def _recover(self, error: SemelError) -> None:
        level = self._failures.failed(error)
        _log.log(level, "heartbeat to group %s failed: %s", self._group_id, error)
        self._pauses = self._pauses or self._cluster.backoff()
        await asyncio.sleep(next(self._pauses) / 1000)
        if not isinstance(error, RetriableError) or isinstance(error, RefreshRetriableError):
            try:
                await self._cluster.cache.refresh(
                    Deadline.after_ms(self._cluster.options.default_api_timeout_ms)
                )
            except SemelError as failure:
                _log.debug("metadata not answered: %s", failure)
                self._unhealed.failed(failure)
                self._arrived.notify()


def _owned(partitions: frozenset[TopicIdPartition]) -> group.OwnedPartitions:
    by_topic: dict[str, list[int]] = {}
    for topic_id, _, partition in sorted(partitions):
        by_topic.setdefault(topic_id, []).append(partition)
    return group.OwnedPartitions(
        topics=[
            participants.TopicPartitions(topic_id=topic_id, partitions=numbers)
            for topic_id, numbers in by_topic.items()
        ]
    )


def answer_of(response: group.ConsumerGroupHeartbeatResponse) -> HeartbeatAnswer:
    """Return what a message answers."""
    return HeartbeatAnswer(
        member_epoch=response.member_epoch,
        heartbeat_interval_ms=response.heartbeat_interval_ms,
        assignment=_assignment(response) if response.HasField("assignment") else None,
    )


def _assignment(
    response: group.ConsumerGroupHeartbeatResponse,
) -> frozenset[TopicIdPartition]:
    """Return the partitions to hold; a topic without a name is deleted, and cannot be read."""
    return frozenset(
        TopicIdPartition(topic.topic_id, topic.topic, partition)
        for topic in response.assignment.topics
        if topic.topic
        for partition in topic.partitions
    )
