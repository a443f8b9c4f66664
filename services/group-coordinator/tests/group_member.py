"""A member as a client is one: it says what it owns, and moves when it is told to.

Its heartbeats travel over a network that the test controls: they may be lost, late, repeated and
out of order, and so may the answers, of which it takes only the one that it waits for.
"""

from collections.abc import Collection
from dataclasses import dataclass

from group_harness import GROUP, GroupHarness

from semel_common.errors import FencedMemberEpochError, SemelError, UnknownMemberIdError
from semel_common.ids import TopicPartition
from semel_group.machine.values import JOIN_EPOCH, Heartbeat, HeartbeatAnswer

NOTHING: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A heartbeat on its way."""

    sender: "ClientMember"
    heartbeat: Heartbeat


class ClientMember:
    """One member's client."""

    def __init__(self, member_id: str, topics: Collection[str]) -> None:
        self.member_id = member_id
        self.topics = frozenset(topics)
        self.epoch = JOIN_EPOCH
        self.owned = NOTHING
        self.target = NOTHING
        self.settled = False
        self.waits_for: Request | None = None
        self.is_void = False
        """Whether the group has removed it without its knowing: what it owns counts for nothing."""

    def speak(self) -> Request:
        """Send a heartbeat, and wait for its answer."""
        heartbeat = Heartbeat(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=1_000,
            subscribed_topics=self.topics,
            owned=self.owned,
        )
        self.waits_for = Request(self, heartbeat)
        return self.waits_for

    def hear(self, request: Request, answer: HeartbeatAnswer | SemelError) -> None:
        """Take an answer, if it is the one that this member waits for."""
        if request is not self.waits_for:
            return
        self.waits_for = None
        if isinstance(answer, SemelError):
            assert isinstance(answer, FencedMemberEpochError | UnknownMemberIdError), answer
            assert self.is_void, f"{self.member_id} was fenced for nothing: {answer}"
            self.epoch, self.owned, self.target = JOIN_EPOCH, NOTHING, NOTHING
            self.is_void = False
            return
        if self.epoch == JOIN_EPOCH:
            self.is_void = False
        self.epoch = answer.member_epoch
        self.settled = answer.settled
        if answer.assignment is not None:
            self.target = frozenset(answer.assignment)

    def move(self, *, at_most: int = 1_000) -> None:
        """Give up partitions that are not in the target; once there are none, take the new ones."""
        revoked = sorted(self.owned - self.target)[:at_most]
        taken = [] if revoked else sorted(self.target - self.owned)[:at_most]
        self.owned = (self.owned - frozenset(revoked)) | frozenset(taken)


def deliver(group: GroupHarness, request: Request) -> HeartbeatAnswer | SemelError:
    """Let the group answer a heartbeat."""
    try:
        return group.run(group.machine.consumer_group_heartbeat(request.heartbeat))
    except SemelError as error:
        return error
