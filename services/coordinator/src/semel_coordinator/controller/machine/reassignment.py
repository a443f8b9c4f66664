"""Leaders of partitions: moves that begin, change, are given up, and complete.

Theory of operation. A partition is led by one broker under a leader epoch, and may be moving to
another. While it moves, the leader goes on serving it until the new one has nearly all of it; then
it hands over, under its leader epoch, for good. Only a record here makes the new one the leader:

    (A, e)               a move to B begins            (A, e, moving to B)
    (A, e, moving to B)  B has all of it, under e      (B, e + 1)
    (A, e, moving to B)  given up                      (A, e + 1)
    (A, e, moving to B)  moves to C instead            (A, e + 1, moving to C)

Every way out of a move raises the epoch. So B cannot end a move that was given up, and A, which may
have handed over under e already, serves again as soon as it sees itself as leader under e + 1. No
two brokers ever serve a partition: the newest record alone says which instance leads. The same
holds for partitions of groups, which group coordinators lead, and for those of the transaction log,
which coordinators lead.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from semel_common.errors import (
    FencedLeaderEpochError,
    SemelError,
    UnknownTopicOrPartitionError,
)
from semel_common.ids import InternalTopic
from semel_coordinator.controller.machine.instances import (
    check_target,
    open_instances,
    registered_instances,
)
from semel_coordinator.controller.machine.internal import (
    check_may_leave,
    find_internal,
    internal_leader,
    leading_role,
    topics_led_by,
)
from semel_coordinator.controller.machine.rebalance import planned
from semel_coordinator.controller.machine.records import InternalPartitionRecord, TopicRecord
from semel_coordinator.controller.machine.state import ControllerState, InstanceKey
from semel_coordinator.controller.machine.topics import identified, named
from semel_runtime.cluster.metadata_image import (
    InternalPartition,
    PartitionLeader,
    ServiceRole,
    Topic,
    role_text,
)


class Reassignment(Struct, frozen=True, kw_only=True):
    """Where a partition is to be led."""

    topic: str
    partition: int
    broker_id: int | None
    """The one that leads it, or None: it stays there, and a move is given up."""


class Completion(Struct, frozen=True, kw_only=True):
    """What a broker says that has taken a partition over."""

    topic_id: str
    partition: int
    leader_epoch: int
    """Of the leader that has handed over."""
    broker_id: int


class Move(NamedTuple):
    """A partition with the decisions on it."""

    topic: str
    partition: int
    leader: PartitionLeader


MoveRecord: TypeAlias = TopicRecord | InternalPartitionRecord
"""What says who leads a partition."""

_SHARING = (ServiceRole.BROKER, ServiceRole.GROUP_COORDINATOR, ServiceRole.COORDINATOR)
"""Whose partitions are shared out, in the order of the answers."""

Reassigned: TypeAlias = PartitionLeader | SemelError
"""What becomes of a partition, or why nothing does."""


class Changes:
    """Decisions on partitions, of which each topic gets one record."""

    def __init__(self, state: ControllerState) -> None:
        """Start from the present state."""
        self._state = state
        self._changed: dict[str, dict[int, PartitionLeader]] = {}
        self._internal: dict[tuple[InternalTopic, int], PartitionLeader] = {}

    def put(self, topic: Topic | InternalTopic, partition: int, leader: PartitionLeader) -> None:
        """Note a decision; one that changes nothing is none."""
        if isinstance(topic, InternalTopic):
            if leader != internal_leader(self._state, topic, partition):
                self._internal[topic, partition] = leader
        elif leader != topic.partitions[partition]:
            self._changed.setdefault(topic.topic_id, {})[partition] = leader

    def records(self) -> list[MoveRecord]:
        """Return the topics that change, and the partitions of internal ones."""
        changed: list[MoveRecord] = [*self._topics(), *self._internal_partitions()]
        first = self._state.version + 1
        return [replace(each, version=version) for version, each in enumerate(changed, first)]

    def _internal_partitions(self) -> Iterator[InternalPartitionRecord]:
        for (topic, partition), leader in sorted(self._internal.items(), key=lambda each: each[0]):
            internal = InternalPartition(topic=topic.value, partition=partition, leader=leader)
            yield InternalPartitionRecord(version=0, internal=internal)

    def _topics(self) -> Iterator[TopicRecord]:
        for topic_id in sorted(self._changed):
            topic, changed = self._state.topics[topic_id].topic, self._changed[topic_id]
            partitions = tuple(
                changed.get(index, leader) for index, leader in enumerate(topic.partitions)
            )
            yield TopicRecord(version=0, topic=replace(topic, partitions=partitions))


def reassigned(
    state: ControllerState, wanted: Sequence[Reassignment]
) -> tuple[list[Reassigned], list[MoveRecord]]:
    """Return what becomes of each partition, which are named once, and the records of that.

    The errors are UnknownTopicOrPartitionError, and InvalidRequestError for a broker that is not
    there, or is decommissioned.
    """
    changes = Changes(state)
    answers = [_reassigned(state, changes, each) for each in wanted]
    return answers, changes.records()


def retargeted(leader: PartitionLeader, broker_id: int | None) -> PartitionLeader:
    """Return a partition that is to be led by a broker; None: by the one that leads it."""
    target = None if broker_id == leader.leader_id else broker_id
    if target == leader.moving_to:
        return leader
    gave_up = leader.moving_to is not None
    return PartitionLeader(leader.leader_id, leader.leader_epoch + gave_up, target)


def rebalanced(state: ControllerState) -> tuple[list[Move], list[MoveRecord]]:
    """Return the moves after which all instances have their shares, and the records of that.

    Raises BrokerNotAvailableError if no instance of a role may lead anything.
    """
    changes = Changes(state)
    moves = []
    for role in _SHARING:
        # An instance that never came leads its share of the layout, and need not hand over.
        if role is not ServiceRole.BROKER and not registered_instances(state, role):
            continue
        instances = open_instances(state, role, "lead partitions")
        for move in planned(topics_led_by(state, role), instances):
            topic = find_internal(move.topic_id) or state.topics[move.topic_id].topic
            after = retargeted(_leader(state, topic, move.partition), move.instance_id)
            changes.put(topic, move.partition, after)
            moves.append(Move(_name(topic), move.partition, after))
    return moves, changes.records()


def completed(state: ControllerState, completion: Completion) -> list[MoveRecord]:
    """Return the record that makes a broker the leader; none if it is already.

    Raises UnknownTopicIdError, UnknownTopicOrPartitionError, and FencedLeaderEpochError if the
    partition does not move there under this leader epoch (any more).
    """
    topic = find_internal(completion.topic_id) or identified(state, completion.topic_id)
    leader = _leader(state, topic, completion.partition)
    after = PartitionLeader(completion.broker_id, completion.leader_epoch + 1)
    moving = (leader.leader_epoch, leader.moving_to)
    if moving == (completion.leader_epoch, completion.broker_id):
        changes = Changes(state)
        changes.put(topic, completion.partition, after)
        return changes.records()
    # The answer was lost on the way. It may be moving on already.
    if (leader.leader_id, leader.leader_epoch) == (after.leader_id, after.leader_epoch):
        return []
    role = role_text(leading_role(topic))
    raise FencedLeaderEpochError(
        f"{_name(topic)}-{completion.partition} does not move to {role} {completion.broker_id}"
        f" under leader epoch {completion.leader_epoch}: {role} {leader.leader_id} leads it under"
        f" {leader.leader_epoch}, and it moves"
        f" {'nowhere' if leader.moving_to is None else f'to {role} {leader.moving_to}'}"
    )


def _reassigned(state: ControllerState, changes: Changes, wanted: Reassignment) -> Reassigned:
    try:
        topic = find_internal(wanted.topic) or named(state, wanted.topic)
        leader = _leader(state, topic, wanted.partition)
        target = None if wanted.broker_id == leader.leader_id else wanted.broker_id
        if target is not None:
            check_may_leave(topic, wanted.partition)
            check_target(state, InstanceKey(leading_role(topic), target))
    except SemelError as error:
        return error
    after = retargeted(leader, wanted.broker_id)
    changes.put(topic, wanted.partition, after)
    return after


def _leader(
    state: ControllerState, topic: Topic | InternalTopic, partition: int
) -> PartitionLeader:
    if isinstance(topic, InternalTopic):
        return internal_leader(state, topic, partition)
    if not 0 <= partition < len(topic.partitions):
        raise UnknownTopicOrPartitionError(
            f"topic {topic.name!r} has no partition {partition}: it has {len(topic.partitions)}"
        )
    return topic.partitions[partition]


def _name(topic: Topic | InternalTopic) -> str:
    return topic.value if isinstance(topic, InternalTopic) else topic.name
