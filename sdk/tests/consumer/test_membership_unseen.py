"""A member that is given partitions and loses them again before it has looked."""

from aiosemel._membership import Heartbeat, HeartbeatAnswer, Membership, TopicIdPartition


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
