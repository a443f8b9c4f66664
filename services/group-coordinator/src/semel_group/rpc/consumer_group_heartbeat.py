"""ConsumerGroupHeartbeat: a member joins, keeps up, acknowledges or leaves.

The times of members are kept beside the machine: the session of each member, and the partitions
that no member holds.
"""

from functools import partial
from math import ceil

import structlog
from msgspec import structs

from semel.group.v1 import group_pb2 as wire
from semel_common.errors import InvalidRequestError
from semel_common.ids import TopicPartition
from semel_common.wire.messages.request_bounds import SUBSCRIPTION_MAX, TOPIC_NAME_LENGTH_MAX
from semel_group.loops.free_partitions import FreePartitions
from semel_group.loops.session_timeouts import LastHeartbeat, MemberSessions, loop_ms
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record
from semel_group.machine.values import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    Heartbeat,
    HeartbeatAnswer,
    MemberKey,
)
from semel_group.rpc.assigned_topics import assignment
from semel_group.rpc.group_ids import group_id
from semel_group.rpc.optional_names import optional_name
from semel_group.rpc.partition_names import check_partition_count, topic_id
from semel_runtime.clock import Clock
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import (
    INT32_MAX,
    require_count,
    require_int,
    require_name,
    shown,
)

log = structlog.get_logger(__name__)

_EVENTS = {
    JOIN_EPOCH: "member joined",
    LEAVE_EPOCH: "member left",
    STATIC_LEAVE_EPOCH: "member left for a while",
}


class HeartbeatReceiver:
    """Answers ConsumerGroupHeartbeat."""

    def __init__(
        self,
        runner: Runner[Record],
        machine: GroupMachine,
        sessions: MemberSessions,
        free: FreePartitions,
        clock: Clock,
        *,
        session_timeout_ms: int,
        heartbeat_interval_ms: int,
        reconciling_heartbeat_interval_ms: int,
    ) -> None:
        self._runner = runner
        self._machine = machine
        self._sessions = sessions
        self._free = free
        self._clock = clock
        self._session_timeout_ms = session_timeout_ms
        self._interval_ms = heartbeat_interval_ms
        self._reconciling_interval_ms = min(
            heartbeat_interval_ms, reconciling_heartbeat_interval_ms
        )

    async def consumer_group_heartbeat(
        self, request: wire.ConsumerGroupHeartbeatRequest, call: Call
    ) -> wire.ConsumerGroupHeartbeatResponse:
        """Move a member one step, and tell it when to speak again."""
        heartbeat = checked_heartbeat(request, arrived_ms=self._clock.now_ms())
        poll_age_ms = _poll_age_ms(request)
        key = MemberKey(heartbeat.group_id, heartbeat.member_id)
        self._sessions.heard(key, loop_ms())
        heartbeat = structs.replace(
            heartbeat,
            overdue=self._free.overdue(key.group_id, loop_ms()),
            is_back=self._free.is_back(key),
        )
        decide = partial(self._machine.consumer_group_heartbeat, heartbeat)
        answer = await self._runner.run(decide)
        self._note(key, answer)
        origin = call.origin
        self._sessions.spoke(
            key,
            LastHeartbeat(
                principal=str(origin.principal),
                address=origin.address,
                came_ms=loop_ms(),
                poll_age_ms=poll_age_ms,
            ),
        )
        _log_event(heartbeat, answer)
        speak_in_ms = self._speak_in_ms(heartbeat.group_id, answer)
        self._free.to_speak(key, speak_in_ms, loop_ms())
        response = wire.ConsumerGroupHeartbeatResponse(
            member_id=heartbeat.member_id,
            member_epoch=answer.member_epoch,
            heartbeat_interval_ms=speak_in_ms,
            session_timeout_ms=self._session_timeout_ms,
        )
        if answer.assignment is not None:
            assigned = assignment(answer.assignment, self._machine.topics)
            response.assignment.CopyFrom(assigned)
        return response

    def _speak_in_ms(self, group_id: str, answer: HeartbeatAnswer) -> int:
        """Return when a member is to speak again: soon, if it waits, or once it can take more."""
        if not answer.settled:
            return self._reconciling_interval_ms
        in_ms = ceil(self._free.overdue_in_ms(group_id, loop_ms()))
        return min(in_ms if in_ms > 0 else self._reconciling_interval_ms, self._interval_ms)

    def _note(self, key: MemberKey, answer: HeartbeatAnswer) -> None:
        """Let the times of a member go on from its answer."""
        self._free.answered(key, answer)
        if answer.member_epoch == LEAVE_EPOCH:
            self._sessions.forget(key)
        elif answer.member_epoch == STATIC_LEAVE_EPOCH:
            self._sessions.away(key, loop_ms())
        else:
            self._sessions.answered(key, answer, loop_ms())


def _log_event(heartbeat: Heartbeat, answer: HeartbeatAnswer) -> None:
    event = _EVENTS.get(heartbeat.member_epoch)
    if event is not None:
        log.info(
            event,
            group_id=heartbeat.group_id,
            member_id=heartbeat.member_id,
            instance_id=heartbeat.instance_id,
            member_epoch=answer.member_epoch,
        )


def checked_heartbeat(
    request: wire.ConsumerGroupHeartbeatRequest, *, arrived_ms: int = 0
) -> Heartbeat:
    """Return a heartbeat. A member that joins sends every field, and owns nothing yet."""
    epoch = require_int("member_epoch", request.member_epoch, minimum=STATIC_LEAVE_EPOCH)
    timeout_ms = require_int(
        "rebalance_timeout_ms", request.rebalance_timeout_ms, maximum=INT32_MAX
    )
    heartbeat = Heartbeat(
        group_id=group_id(request.group_id),
        member_id=require_name("member_id", request.member_id),
        member_epoch=epoch,
        instance_id=optional_name("instance_id", request.instance_id),
        takes_over=request.takes_over,
        rebalance_timeout_ms=timeout_ms or None,
        subscribed_topics=_subscription(request),
        owned=_owned(request),
        server_assignor=optional_name("server_assignor", request.server_assignor),
        arrived_ms=arrived_ms,
    )
    if epoch == JOIN_EPOCH:
        _check_joining(heartbeat)
    _check_static_member(heartbeat)
    return heartbeat


def _poll_age_ms(request: wire.ConsumerGroupHeartbeatRequest) -> int | None:
    if not request.HasField("poll_age_ms"):
        return None
    return require_int("poll_age_ms", request.poll_age_ms, maximum=INT32_MAX)


def _check_joining(joining: Heartbeat) -> None:
    if joining.rebalance_timeout_ms is None:
        raise InvalidRequestError(
            "rebalance_timeout_ms is 0: a member that joins must give one",
            field="rebalance_timeout_ms",
        )
    if joining.subscribed_topics is None:
        raise InvalidRequestError(
            "subscription is absent: a member that joins must give one", field="subscription"
        )
    if joining.owned:
        raise InvalidRequestError(
            f"owned has {len(joining.owned)} partitions: a member that joins owns none",
            field="owned",
        )


def _check_static_member(heartbeat: Heartbeat) -> None:
    epoch, instance_id = heartbeat.member_epoch, heartbeat.instance_id
    if heartbeat.takes_over and not (epoch == JOIN_EPOCH and instance_id):
        raise InvalidRequestError(
            f"takes_over is set with member_epoch {epoch} and instance_id"
            f" {shown(instance_id)!r}: only a member that joins (epoch 0) with an instance id"
            " takes it over",
            field="takes_over",
        )
    if epoch == STATIC_LEAVE_EPOCH and not instance_id:
        raise InvalidRequestError(
            "instance_id is empty: only a static member leaves for a while (epoch -2)",
            field="instance_id",
        )


def _subscription(request: wire.ConsumerGroupHeartbeatRequest) -> frozenset[str] | None:
    if not request.HasField("subscription"):
        return None
    topics = request.subscription.topics
    require_count("subscription.topics", topics, maximum=SUBSCRIPTION_MAX)
    return frozenset(
        require_name("subscription.topics", topic, length_max=TOPIC_NAME_LENGTH_MAX)
        for topic in topics
    )


def _owned(request: wire.ConsumerGroupHeartbeatRequest) -> frozenset[TopicPartition] | None:
    if not request.HasField("owned"):
        return None
    check_partition_count("owned.topics", request.owned.topics)
    return frozenset(
        TopicPartition(
            topic_id("owned.topics.topic_id", topic.topic_id),
            require_int("owned.topics.partitions", partition, maximum=INT32_MAX),
        )
        for topic in request.owned.topics
        for partition in topic.partitions
    )
