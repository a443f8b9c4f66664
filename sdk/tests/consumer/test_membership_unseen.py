"""A member that must acknowledge what it never had, or has no more."""

from aiosemel._consumer.group.member import answer_of
from aiosemel._consumer.group.membership import (
    Heartbeat,
    HeartbeatAnswer,
    Membership,
    TopicIdPartition,
)
from aiosemel.errors import RequestTimedOutError
from semel.group.v1 import group_pb2 as group


def test_partitions_that_came_and_went_unseen_are_acknowledged() -> None:
    member = Membership("m")
    member.subscribe(["t"])
    few, many = (frozenset(TopicIdPartition("id", "t", n) for n in range(k)) for k in (2, 4))

    def beat(epoch: int, assignment: frozenset[TopicIdPartition] | None) -> Heartbeat:
        heartbeat = member.next_heartbeat()
        member.answered(
            heartbeat,
            HeartbeatAnswer(member_epoch=epoch, heartbeat_interval_ms=5, assignment=assignment),
        )
        return heartbeat

    beat(1, few)
    member.assigned(member.to_assign)
    beat(1, None)
    beat(2, many)
    beat(3, few)
    assert member.heartbeat_due
    acknowledging = beat(3, None)
    assert (acknowledging.member_epoch, acknowledging.owned) == (3, few)
    assert not member.heartbeat_due


def test_partitions_of_an_earlier_incarnation_are_acknowledged() -> None:
    """Its leaving was not heard: the group still waits until it has given everything up."""
    member = Membership("m")
    member.subscribe(["t"])
    member.overdue()
    member.failed(member.next_heartbeat(), RequestTimedOutError("lost"))
    member.let_go()
    nothing: frozenset[TopicIdPartition] = frozenset()
    rejoining = member.next_heartbeat()
    assert rejoining.member_epoch == 0
    answer = HeartbeatAnswer(member_epoch=7, heartbeat_interval_ms=5, assignment=nothing)
    member.answered(rejoining, answer)
    assert member.heartbeat_due
    acknowledging = member.next_heartbeat()
    assert (acknowledging.member_epoch, acknowledging.owned) == (7, nothing)
    member.answered(acknowledging, answer)
    assert not member.heartbeat_due


def test_partitions_of_a_deleted_topic_are_not_taken() -> None:
    """The coordinator has no name for them any more."""
    response = group.ConsumerGroupHeartbeatResponse(
        member_epoch=2,
        assignment=group.Assignment(
            topics=[
                group.AssignedTopic(topic_id="gone", partitions=[0]),
                group.AssignedTopic(topic_id="id", topic="t", partitions=[1]),
            ]
        ),
    )
    assert answer_of(response).assignment == frozenset({TopicIdPartition("id", "t", 1)})
