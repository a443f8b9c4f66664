"""One member of a consumer group: its heartbeats, and the partitions that it holds (KIP-848).

Theory of operation. The group coordinator alone decides. The member's heartbeats say its epoch, its
topics and the partitions that it holds; an answer has an epoch and, sometimes, an assignment.
Reconciling to an assignment has two steps, in this order: give up the partitions that are not in it
(``to_revoke``, then ``revoked``), take the new ones (``to_assign``, then ``assigned``). After each
step, the member's partitions differ from those of its last heartbeat, so a heartbeat is due at
once: it is the acknowledgement that lets other members have the partitions.

The member acknowledges no partition as given up before ``revoked`` is called, so a user that has to
end a transaction first does so before that call (protocol.md, section 5).

A static member leaves for a while, unless it is to leave for good: what it is to hold is kept for
the member that comes back with its instance id, until its session is over. When it joins for the
first time it takes over: a process that was killed has not left, and its member is fenced. When it
joins again, because it was fenced or has left, another process may have taken over meanwhile: then
it stands by, and joining is tried again and again.

A fenced member holds nothing any more: it sends nothing until its user has let go of everything
(``let_go``), then joins again. Each joining is an incarnation; the member ignores answers to an
earlier one. After a heartbeat without an answer, the next one says everything, and the group
coordinator answers the whole assignment to that.

The machine has no clock, no chance and no I/O. Its driver sends ``next_heartbeat`` whenever
``heartbeat_due``, or when the interval since the last one is over and ``heartbeats`` says so; one
at a time.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from semel_common.errors import (
    FencedMemberEpochError,
    RetriableError,
    SaslAuthenticationError,
    SemelError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnknownServerError,
)

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
FIRST_HEARTBEAT_INTERVAL_MS = 1_000
"""How often to try until the group coordinator has said how often."""


class MemberState(StrEnum):
    """Where a member stands; Kafka's names."""

    UNSUBSCRIBED = "UNSUBSCRIBED"
    JOINING = "JOINING"
    RECONCILING = "RECONCILING"
    STABLE = "STABLE"
    FENCED = "FENCED"
    STALE = "STALE"
    LEAVING = "LEAVING"
    FATAL = "FATAL"


PREDECESSORS: dict[MemberState, frozenset[MemberState]] = {
    MemberState.UNSUBSCRIBED: frozenset({MemberState.LEAVING}),
    MemberState.JOINING: frozenset(
        {MemberState.UNSUBSCRIBED, MemberState.FENCED, MemberState.STALE}
    ),
    MemberState.RECONCILING: frozenset({MemberState.JOINING, MemberState.STABLE}),
    MemberState.STABLE: frozenset({MemberState.JOINING, MemberState.RECONCILING}),
    MemberState.FENCED: frozenset(
        {MemberState.JOINING, MemberState.RECONCILING, MemberState.STABLE}
    ),
    MemberState.STALE: frozenset(
        {MemberState.JOINING, MemberState.RECONCILING, MemberState.STABLE}
    ),
    MemberState.LEAVING: frozenset(MemberState) - {MemberState.UNSUBSCRIBED},
    MemberState.FATAL: frozenset(
        {MemberState.JOINING, MemberState.RECONCILING, MemberState.STABLE}
    ),
}
"""From which states a state may be entered."""

_ACTIVE = frozenset({MemberState.JOINING, MemberState.RECONCILING, MemberState.STABLE})
_HOLDING = frozenset({MemberState.RECONCILING, MemberState.STABLE})
_FENCING = (FencedMemberEpochError, StaleMemberEpochError, UnknownMemberIdError)


class TopicIdPartition(NamedTuple):
    """A partition by name and id of its topic: made again under the same name, it is another."""

    topic_id: str
    topic: str
    partition: int


Partitions = frozenset[TopicIdPartition]
NO_PARTITIONS: Partitions = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The fields of a heartbeat. None: as in the last one."""

    incarnation: int
    member_epoch: int
    topics: tuple[str, ...] | None
    owned: Partitions | None
    full: bool
    """Whether the answer must hold the whole assignment; then nothing is left out."""
    takes_over: bool = False
    """Whether it joins in the place of the member that has its instance id."""

    @property
    def leaves(self) -> bool:
        """Whether it says goodbye."""
        return self.member_epoch < JOIN_EPOCH


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatAnswer:
    """The answer to a heartbeat. Without an assignment: as before."""

    member_epoch: int
    heartbeat_interval_ms: int
    assignment: Partitions | None


class Membership:
    """One member of one group."""

    def __init__(
        self, member_id: str, instance_id: str = "", *, leaves_for_good: bool = False
    ) -> None:
        """Be no member yet. The member id is random, and the same for every joining.

        With an instance id: a static member. It leaves for a while, unless ``leaves_for_good``.
        """
        self.member_id = member_id
        self._leave_epoch = (
            LEAVE_EPOCH if leaves_for_good or not instance_id else STATIC_LEAVE_EPOCH
        )
        self.instance_id = instance_id
        self.member_epoch = JOIN_EPOCH
        """The epoch of the last answer. A fenced member keeps it, so that the coordinator refuses
        its late requests.
        """
        self.state = MemberState.UNSUBSCRIBED
        self.owned: Partitions = NO_PARTITIONS
        """What the user holds."""
        self.heartbeat_interval_ms = FIRST_HEARTBEAT_INTERVAL_MS
        self.error: SemelError | None = None
        """Why the member is FENCED or FATAL."""
        self._incarnation = 0
        self._topics: tuple[str, ...] = ()
        self._target: Partitions = NO_PARTITIONS
        self._said_topics: tuple[str, ...] | None = None
        self._said_owned: Partitions | None = None
        self._leaving_unsaid = False

    # -- what there is to do ---------------------------------------------------------------------

    @property
    def heartbeats(self) -> bool:
        """Whether the group coordinator expects to hear from this member."""
        return self.state in _ACTIVE

    @property
    def heartbeat_due(self) -> bool:
        """Whether something is to be said now, without waiting for the interval."""
        if self.state in _HOLDING:
            return self._said_owned != self.owned or self._said_topics != self._topics
        if self.state is MemberState.STALE:
            return self._leaving_unsaid
        return self.state in {MemberState.JOINING, MemberState.LEAVING}

    @property
    def to_revoke(self) -> Partitions:
        """The partitions that the user gives up, and then confirms by ``revoked``."""
        return self.owned - self._target if self.state is MemberState.RECONCILING else NO_PARTITIONS

    @property
    def to_assign(self) -> Partitions:
        """The partitions that the user takes next, and then confirms by ``assigned``."""
        reconciling = self.state is MemberState.RECONCILING and not self.to_revoke
        return self._target - self.owned if reconciling else NO_PARTITIONS

    @property
    def must_let_go(self) -> bool:
        """Whether the user has lost everything, is to stop using it, and then call ``let_go``."""
        return self.state in {MemberState.FENCED, MemberState.STALE}

    # -- what the user does ----------------------------------------------------------------------

    @property
    def topics(self) -> frozenset[str]:
        """The topics that the user wants to read."""
        return frozenset(self._topics)

    def subscribe(self, topics: Collection[str]) -> None:
        """Want to read these topics; joins if it is no member yet, or as soon as it has left."""
        self._topics = tuple(sorted(set(topics)))
        if self.state is MemberState.UNSUBSCRIBED:
            self._join()

    def revoked(self, partitions: Partitions) -> None:
        """Have given up partitions: the group coordinator may have them."""
        self.owned -= partitions
        if self.state in _HOLDING:
            self._settle()

    def assigned(self, partitions: Partitions) -> None:
        """Have taken partitions."""
        self.owned |= partitions
        if self.state in _HOLDING:
            self._settle()

    def let_go(self) -> None:
        """Note that the user has let go of everything that was lost; joins again."""
        assert self.must_let_go, f"nothing was lost in state {self.state}"
        self._join()

    def overdue(self) -> None:
        """Leave, because the user has not polled for too long; it comes back by ``let_go``.

        It is told to the group coordinator, so that others have the partitions at once.
        """
        if self.state in _ACTIVE:
            self._enter(MemberState.STALE)
            self._leaving_unsaid = True

    def leave(self) -> None:
        """Leave, until ``subscribe``; the user has given up everything."""
        self._topics = ()
        if self.state is not MemberState.UNSUBSCRIBED:
            self._enter(MemberState.LEAVING)
            self.owned = self._target = NO_PARTITIONS

    # -- the exchange ----------------------------------------------------------------------------

    def next_heartbeat(self) -> Heartbeat:
        """Return what to say now."""
        assert self.heartbeats or self.heartbeat_due, f"nothing to say in state {self.state}"
        if self.state in {MemberState.LEAVING, MemberState.STALE}:
            self._leaving_unsaid = False
            return self._heartbeat(self._leave_epoch, topics=None, owned=None, full=False)
        full = self._said_owned is None or self._said_topics is None
        return self._heartbeat(
            JOIN_EPOCH if self.state is MemberState.JOINING else self.member_epoch,
            topics=self._topics if full or self._said_topics != self._topics else None,
            owned=self.owned if full or self._said_owned != self.owned else None,
            full=full,
            takes_over=self._takes_over,
        )

    def answered(self, heartbeat: Heartbeat, answer: HeartbeatAnswer) -> None:
        """Take the answer to a heartbeat."""
        if heartbeat.leaves:
            self._left()
            return
        if heartbeat.incarnation != self._incarnation or self.state not in _ACTIVE:
            return
        moved = answer.member_epoch != heartbeat.member_epoch
        self.member_epoch = answer.member_epoch
        self.heartbeat_interval_ms = answer.heartbeat_interval_ms
        self._said_topics = self._said_topics if heartbeat.topics is None else heartbeat.topics
        self._said_owned = self._said_owned if heartbeat.owned is None else heartbeat.owned
        if answer.assignment is not None:
            self._target = answer.assignment
            if moved and self.owned == self._target:
                # Partitions may have come and gone before they were taken, or are still to be given
                # up by an earlier incarnation whose leaving was not heard. What is held will not
                # change, but only a heartbeat at the new epoch acknowledges that they are gone.
                self._said_owned = None
        self._settle()

    def failed(self, heartbeat: Heartbeat, error: SemelError) -> None:
        """Take the error of a heartbeat that was refused, or had no answer."""
        if heartbeat.leaves:
            self._left()  # the session times out by itself
            return
        if heartbeat.incarnation != self._incarnation or self.state not in _ACTIVE:
            return
        keeps_place = isinstance(error, SaslAuthenticationError) and self.state in _HOLDING
        if isinstance(error, (RetriableError, UnknownServerError)) or keeps_place:
            self._said_topics = self._said_owned = None
            return
        self.error = error
        self._target = NO_PARTITIONS
        fenced = isinstance(error, _FENCING)
        self._enter(MemberState.FENCED if fenced else MemberState.FATAL)

    # -- states ----------------------------------------------------------------------------------

    @property
    def _takes_over(self) -> bool:
        """Whether it joins for the first time: no other process can have replaced it yet."""
        is_first = self.state is MemberState.JOINING and self._incarnation == 1
        return is_first and bool(self.instance_id)

    def _join(self) -> None:
        self._enter(MemberState.JOINING)
        self._incarnation += 1
        self.owned = self._target = NO_PARTITIONS
        self._said_topics = self._said_owned = None

    def _left(self) -> None:
        if self.state is MemberState.LEAVING:
            self._enter(MemberState.UNSUBSCRIBED)
            if self._topics:
                self._join()

    def _settle(self) -> None:
        """Be STABLE or RECONCILING, by the partitions that the member holds."""
        reached = MemberState.STABLE if self.owned == self._target else MemberState.RECONCILING
        if reached is not self.state:
            self._enter(reached)

    def _enter(self, state: MemberState) -> None:
        assert self.state in PREDECESSORS[state], f"no way from {self.state} to {state}"
        self.state = state

    def _heartbeat(
        self,
        epoch: int,
        *,
        topics: tuple[str, ...] | None,
        owned: Partitions | None,
        full: bool,
        takes_over: bool = False,
    ) -> Heartbeat:
        return Heartbeat(
            incarnation=self._incarnation,
            member_epoch=epoch,
            topics=topics,
            owned=owned,
            full=full,
            takes_over=takes_over,
        )
