"""Members as the SDK has them, and the group as its coordinator has it, over a bad network.

Hypothesis looks for broken promises: requests and answers get lost, late and repeated, members come
and go, are slow, silent and expired, static members are closed and started again, topics change.
Some promises hold all the time: no member uses a partition that the group gave to another member,
the group fences no member without a reason, and a member that has left holds nothing. Another one
holds at the end: once the network works, every member gets its share, without a rebalance
time-out's help. (protocol.md, section 5; KIP-848.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import count
from typing import cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aiosemel import ConsumerOptions
from aiosemel._cluster.routes import Cluster
from aiosemel._consumer.group.member import GroupMember, answer_of
from aiosemel._consumer.group.membership import Heartbeat, Membership, MemberState, TopicIdPartition
from aiosemel._shared.change_signal import Signal
from semel.group.v1.group_pb2 import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from semel_common.errors import (
    FencedInstanceIdError,
    RequestTimedOutError,
    SemelError,
    UnreleasedInstanceIdError,
)
from semel_group.machine import GroupLimits, GroupMachine
from semel_group.machine.records import Member as GroupsMember
from semel_group.machine.records import Record
from semel_group.machine.values import MemberKey
from semel_group.rpc.assigned_topics import assignment
from semel_group.rpc.consumer_group_heartbeat import checked_heartbeat
from semel_runtime.cluster.metadata_image import ClusterImage, Layout, PartitionLeader, Topic

pytestmark = pytest.mark.timeout(300)

GROUP = "group"
TOPICS = ("orders", "income")
MEMBERS_MAX = 4
ROUNDS_MAX = 20


class Fate(Enum):
    """The fate of a heartbeat."""

    ANSWERED = auto()
    ANSWER_LOST = auto()
    """The network may still repeat it."""
    REQUEST_LATE = auto()
    """It arrives when its member has stopped waiting for it, or never."""


fates = st.sampled_from((*Fate, Fate.ANSWERED, Fate.ANSWERED))
some_options = st.builds(
    ConsumerOptions,
    group_instance_id=st.sampled_from(("", "", "s", "t")),
    server_assignor=st.sampled_from(("", "uniform", "range")),
)
some_topics = st.sets(st.sampled_from(TOPICS), min_size=1).map(sorted)


class Group:
    """The group coordinator, as far as it decides about membership."""

    def __init__(self) -> None:
        self.machine = GroupMachine(0, GroupLimits())
        self.partitions = dict.fromkeys(TOPICS, 0)
        self._version = count(1)
        self._born = count()
        self._ids = dict.fromkeys(TOPICS, "")
        self._records = count()

    def resize(self, topic: str, partitions: int) -> None:
        """Create a topic, let it grow, or delete it; a topic made again has another id."""
        if partitions and not self.partitions[topic]:
            self._ids[topic] = f"{topic}-{next(self._born)}"
        self.partitions[topic] = partitions and max(partitions, self.partitions[topic])
        self._run(self.machine.update_cluster(self._image()).records)

    def _image(self) -> ClusterImage:
        return ClusterImage(
            cluster_id="cluster",
            version=next(self._version),
            layout=Layout(
                transaction_log_partitions=50,
                coordinators=1,
                group_partitions=50,
                group_coordinators=1,
            ),
            instances=(),
            topics=tuple(
                Topic(
                    topic_id=self._ids[name],
                    name=name,
                    partitions=(PartitionLeader(0, 0),) * partitions,
                )
                for name, partitions in self.partitions.items()
                if partitions
            ),
        )

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        """Answer a heartbeat, as the service does. Raises SemelError."""
        result = self.machine.consumer_group_heartbeat(checked_heartbeat(request))
        self._run(result.records)
        answer = result.response
        response = ConsumerGroupHeartbeatResponse(
            member_epoch=answer.member_epoch, heartbeat_interval_ms=5
        )
        if answer.assignment is not None:
            assigned = assignment(answer.assignment, self.machine.topics)
            response.assignment.CopyFrom(assigned)
        return response

    def expire(self, member_id: str) -> bool:
        """Let a member's session be over; returns whether there was one."""
        result = self.machine.expire_member(MemberKey(GROUP, member_id), now_ms=0)
        self._run(result.records)
        return result.response

    def _run(self, records: Sequence[Record]) -> None:
        for record in records:
            self.machine.replay(next(self._records), record)

    def known(self) -> Mapping[str, GroupsMember]:
        """Return all members, with the static members that are away."""
        state = self.machine.membership.groups.get(GROUP)
        return {} if state is None else state.members

    def members(self) -> frozenset[str]:
        """Return the names of the members that are there."""
        return frozenset(name for name, each in self.known().items() if not each.is_away)

    def holder(self, instance_id: str) -> GroupsMember:
        """Return the member that has an instance id, there or away."""
        (holder,) = (each for each in self.known().values() if each.instance_id == instance_id)
        return holder

    def held(self, member_id: str) -> frozenset[tuple[str, int]]:
        """Return the partitions that a member may be using."""
        known = self.known().get(member_id)
        return frozenset() if known is None else frozenset(known.held)

    def wanted(self, topics: set[str]) -> list[tuple[str, int]]:
        """Return all partitions of topics."""
        return sorted(
            (self._ids[topic], number)
            for topic in topics
            for number in range(self.partitions[topic])
        )


@dataclass(eq=False)
class Member:
    """One consumer: the SDK's machine, and the user's code, which follows it at any pace."""

    name: str
    topics: list[str]
    options: ConsumerOptions
    voice: GroupMember = field(init=False)
    is_void: bool = False
    """Whether the group has removed it without its knowing: what it owns counts for nothing."""
    is_replaced: bool = False
    """Whether another member has taken its instance id: a process that was started after it, or one
    that is gone and was heard late."""

    def __post_init__(self) -> None:
        nowhere = cast("Cluster", None)
        self.voice = GroupMember(nowhere, GROUP, self.name, self.options, Signal())
        self.machine.subscribe(self.topics)

    @property
    def machine(self) -> Membership:
        return self.voice.membership

    @property
    def owned(self) -> frozenset[TopicIdPartition]:
        return self.machine.owned

    def speak(self) -> "Request":
        said = self.machine.next_heartbeat()
        return Request(self, said, self.voice.request(said))

    def hear(self, request: "Request", answer: ConsumerGroupHeartbeatResponse | SemelError) -> None:
        """Take an answer, or that there was none."""
        if isinstance(answer, SemelError):
            may_be = (RequestTimedOutError, UnreleasedInstanceIdError)
            is_normal = isinstance(answer, may_be) or self.is_void or request.said.leaves
            assert is_normal, f"{self.name} was fenced for nothing: {answer}"
            self.machine.failed(request.said, answer)
        else:
            self.machine.answered(request.said, answer_of(answer))
            self.is_void = self.is_void and bool(request.said.member_epoch)

    def move(self) -> None:
        """Do the user's next step of a rebalance."""
        machine = self.machine
        if machine.must_let_go:
            machine.let_go()
        elif machine.to_revoke:
            machine.revoked(machine.to_revoke)
        elif machine.to_assign:
            machine.assigned(machine.to_assign)


@dataclass(frozen=True, eq=False)
class Request:
    """A heartbeat on its way."""

    sender: Member
    said: Heartbeat
    message: ConsumerGroupHeartbeatRequest


class BadNetwork(RuleBasedStateMachine):
    """The events, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.group = Group()
        self.members: list[Member] = []
        self.late: list[Request] = []
        self.born = count()

    @initialize(partitions=st.integers(1, 4))
    def begin(self, partitions: int) -> None:
        self.group.resize("orders", partitions)

    # -- members ---------------------------------------------------------------------------------

    @precondition(lambda self: len(self.members) < MEMBERS_MAX)
    @rule(topics=some_topics, place=st.sampled_from("abcdef"), options=some_options)
    def come(self, topics: list[str], place: str, options: ConsumerOptions) -> None:
        self.members.append(Member(f"{place}-{next(self.born)}", topics, options))

    @precondition(lambda self: self.members)
    @rule(data=st.data(), fate=fates)
    def speak(self, data: st.DataObject, fate: Fate) -> None:
        self._exchange(self._some_member(data), fate)

    @precondition(lambda self: self.members)
    @rule()
    def let_an_interval_pass(self) -> None:
        for member in self.members:
            self._exchange(member, Fate.ANSWERED)

    @precondition(lambda self: self.members)
    @rule(data=st.data(), steps=st.integers(1, 3))
    def move(self, data: st.DataObject, steps: int) -> None:
        member = self._some_member(data)
        for _ in range(steps):
            member.move()

    @precondition(lambda self: self.members)
    @rule(data=st.data(), topics=some_topics)
    def subscribe(self, data: st.DataObject, topics: list[str]) -> None:
        member = self._some_member(data)
        member.topics = topics
        member.machine.subscribe(topics)

    @precondition(lambda self: self.members)
    @rule(data=st.data(), fate=fates)
    def become_overdue(self, data: st.DataObject, fate: Fate) -> None:
        """Be slow to poll, so that the member leaves by itself, until its user comes back."""
        self._be_overdue(self._some_member(data), fate)

    @precondition(lambda self: self.members)
    @rule(data=st.data(), fate=fates)
    def leave(self, data: st.DataObject, fate: Fate) -> None:
        self.leave_group(self._some_member(data), fate)

    def leave_group(self, member: Member, fate: Fate) -> None:
        """Let a member go for good, or for a while if it is static."""
        self.members.remove(member)
        member.machine.leave()
        self._say_goodbye(member, fate)

    def _be_overdue(self, member: Member, fate: Fate) -> None:
        leaves = member.machine.heartbeats
        member.machine.overdue()
        if leaves:
            self._say_goodbye(member, fate)

    def _say_goodbye(self, member: Member, fate: Fate) -> None:
        """Leave: once the group has heard of it, it does not count on the member any more."""
        assert member.machine.heartbeat_due, f"{member.name} leaves without a word"
        self._exchange(member, fate)
        assert fate is Fate.REQUEST_LATE or member.name not in self.group.members()

    @precondition(lambda self: self.members)
    @rule(data=st.data(), fate=fates, again=fates)
    def restart(self, data: st.DataObject, fate: Fate, again: Fate) -> None:
        """Be closed and started again: a static member is soon back under another member id."""
        member = self._some_member(data)
        self.leave_group(member, fate)
        name = f"{member.name[0]}-{next(self.born)}"
        self.members.append(Member(name, member.topics, member.options))
        self._exchange(self.members[-1], again)

    @precondition(lambda self: self.members)
    @rule(data=st.data(), fate=fates)
    def forget(self, data: st.DataObject, fate: Fate) -> None:
        """Be overdue, and let the user come back to a group that may not have heard of it."""
        member = self._some_member(data)
        self._be_overdue(member, fate)
        member.move()
        self._exchange(member, Fate.ANSWERED)

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        member = self._some_member(data)
        member.is_void |= self.group.expire(member.name)

    def _some_member(self, data: st.DataObject) -> Member:
        return data.draw(st.sampled_from(self.members), label="member")

    # -- network and cluster ---------------------------------------------------------------------

    @precondition(lambda self: self.late)
    @rule(data=st.data(), comes_again=st.booleans())
    def arrive_late(self, data: st.DataObject, comes_again: bool) -> None:
        """Let any heartbeat arrive that its member has stopped waiting for, perhaps once again."""
        request = data.draw(st.sampled_from(self.late), label="request")
        if not comes_again:
            self.late.remove(request)
        self._deliver(request)

    @rule(topic=st.sampled_from(TOPICS), partitions=st.integers(0, 5))
    def change_topic(self, topic: str, partitions: int) -> None:
        self.group.resize(topic, partitions)

    def _exchange(self, member: Member, fate: Fate) -> None:
        """Let a member send a heartbeat that is due, or that the interval asks for."""
        if not (member.machine.heartbeats or member.machine.heartbeat_due):
            return
        request = member.speak()
        answer: ConsumerGroupHeartbeatResponse | SemelError = RequestTimedOutError("no answer")
        if fate is not Fate.REQUEST_LATE:
            heard = self._deliver(request)
            answer = answer if fate is Fate.ANSWER_LOST else heard
        if fate is not Fate.ANSWERED:
            self.late.append(request)
        member.hear(request, answer)

    def _deliver(self, request: Request) -> ConsumerGroupHeartbeatResponse | SemelError:
        before = self.group.members()
        try:
            answer = self.group.heartbeat(request.message)
        except UnreleasedInstanceIdError as error:
            assert not self.group.holder(request.message.instance_id).is_away
            return error
        except FencedInstanceIdError as error:
            holder = self.group.holder(request.message.instance_id)
            assert holder.member_id != request.message.member_id
            request.sender.is_replaced = True
            return error
        except SemelError as error:
            return error
        gone = before - self.group.members()
        for member in self.members:
            if member.name in gone and member.machine.state in _BELIEVES:
                member.is_void = True
                member.is_replaced |= member is not request.sender
        return answer

    # -- promises --------------------------------------------------------------------------------

    @invariant()
    def nobody_uses_what_another_was_given(self) -> None:
        used: dict[tuple[str, int], str] = {}
        for member in self.members:
            if member.is_void or member.machine.must_let_go:
                continue
            owned = frozenset((each.topic_id, each.partition) for each in member.owned)
            assert owned <= self.group.held(member.name), f"{member.name} has what it was not given"
            for partition in owned:
                holder = used.setdefault(partition, member.name)
                assert holder == member.name, f"{holder} and {member.name} use {partition}"

    @invariant()
    def who_is_away_holds_nothing(self) -> None:
        assert not any(each.held for each in self.group.known().values() if each.is_away)

    @invariant()
    def every_partition_has_a_name(self) -> None:
        assert all(each.topic for member in self.members for each in member.owned)

    def teardown(self) -> None:
        """Let the network work, and lost members expire: soon every member holds its share."""
        for name in sorted(self.group.known().keys() - {each.name for each in self.members}):
            self.group.expire(name)
        for _ in range(ROUNDS_MAX):
            for member in self.members:
                member.move()
                if member.machine.state is MemberState.FATAL:
                    self.group.expire(member.name)  # A late request of it may have joined again.
                self._exchange(member, Fate.ANSWERED)
                self.nobody_uses_what_another_was_given()
        stable = [each for each in self.members if each.machine.state is MemberState.STABLE]
        instances = {each.machine.instance_id for each in stable}
        for member in self.members:
            standing_by = member.machine.state in {MemberState.JOINING, MemberState.FATAL}
            is_replaced = member.is_replaced and member.machine.state is MemberState.FATAL
            waits = standing_by and member.machine.instance_id in instances
            assert member in stable or waits or is_replaced
        owned = [(p.topic_id, p.partition) for each in stable for p in each.owned]
        topics = {topic for each in stable for topic in each.topics}
        assert sorted(owned) == self.group.wanted(topics)
        assert not any(each.machine.heartbeat_due for each in stable)


_BELIEVES = frozenset({MemberState.JOINING, MemberState.RECONCILING, MemberState.STABLE})
"""States of a member that believes to be one."""

TestBadNetwork = BadNetwork.TestCase
TestBadNetwork.settings = settings(
    max_examples=200,
    stateful_step_count=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
