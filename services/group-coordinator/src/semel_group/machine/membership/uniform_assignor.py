"""The uniform assignor: shares as equal as subscriptions allow, with as few moves as that needs.

Theory of operation. First, every member keeps the partitions of the last target, as far as it still
wants them. Then each free partition goes to the subscriber with the smallest share, and to the
speaker first, which can take it at once. Chains even out the rest: the member with the largest
share hands a partition to a member that wants it, which may hand on another one, until a member
with a share smaller by two or more has one more. When no such chain is left, no assignment is more
even (Harvey et al., "Semi-matchings for bipartite graphs and load balancing"). Where all members
subscribe to the same, every chain is one step, so nothing but the surplus moves.

Partitions of topics with the same subscribers are all alike here: they are of one *kind*.

Source: Kafka's UniformAssignor, which is as even only where all subscribe to the same.
"""

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from semel_common.ids import TopicPartition
from semel_group.machine.membership.assignment import Subscriptions, Target


class _Step(NamedTuple):
    """A member gives away a partition of a kind."""

    giver: str
    kind: int


class _Shares:
    """What every member has so far."""

    def __init__(self, subscriptions: Subscriptions, topics: Mapping[str, int]) -> None:
        self.kinds: dict[str, int] = {}
        """The kind of each topic that has a subscriber."""
        self.subscribers: dict[int, tuple[str, ...]] = {}
        """The subscribers of each kind."""
        self.held: dict[str, dict[int, list[TopicPartition]]] = {m: {} for m in subscriptions}
        """What each member has, by kind."""
        self.sizes = dict.fromkeys(subscriptions, 0)
        known: dict[tuple[str, ...], int] = {}
        for topic_id in sorted(topics):
            wanting = tuple(m for m, topic_ids in subscriptions.items() if topic_id in topic_ids)
            if wanting:
                self.kinds[topic_id] = kind = known.setdefault(wanting, len(known))
                self.subscribers[kind] = wanting

    def give(self, member_id: str, partition: TopicPartition) -> None:
        """Let a member have one more."""
        self.held[member_id].setdefault(self.kinds[partition.topic_id], []).append(partition)
        self.sizes[member_id] += 1

    def hand_over(self, step: _Step, taker: str) -> None:
        """Let one member have another's partition: that which came last, to move it once only."""
        of_kind = self.held[step.giver][step.kind]
        self.give(taker, of_kind.pop())
        self.sizes[step.giver] -= 1
        if not of_kind:
            del self.held[step.giver][step.kind]


def assign_uniform(
    subscriptions: Subscriptions, topics: Mapping[str, int], last: Target, *, speaker: str = ""
) -> Target:
    """Give every partition to a subscriber of its topic: evenly, and where it was if possible."""
    shares = _Shares(subscriptions, topics)
    kept = _keep(shares, subscriptions, topics, last)
    free: dict[int, list[TopicPartition]] = {kind: [] for kind in shares.subscribers}
    for topic_id, kind in shares.kinds.items():
        every = (TopicPartition(topic_id, each) for each in range(topics[topic_id]))
        free[kind] += (each for each in every if each not in kept)
    for kind in sorted(free, key=lambda each: len(shares.subscribers[each])):
        _share_out(shares, kind, free[kind], speaker)
    _even_out(shares)
    return {
        member_id: frozenset(each for of_kind in by_kind.values() for each in of_kind)
        for member_id, by_kind in shares.held.items()
    }


def _keep(
    shares: _Shares, subscriptions: Subscriptions, topics: Mapping[str, int], last: Target
) -> frozenset[TopicPartition]:
    """Leave with everybody what it had and may keep; returns all of it."""
    kept: set[TopicPartition] = set()
    for member_id, topic_ids in subscriptions.items():
        for topic_partition in sorted(last.get(member_id, ())):
            if topic_partition.topic_id in topic_ids and topic_partition.partition < topics.get(
                topic_partition.topic_id, 0
            ):
                shares.give(member_id, topic_partition)
                kept.add(topic_partition)
    return frozenset(kept)


def _share_out(shares: _Shares, kind: int, free: Iterable[TopicPartition], speaker: str) -> None:
    """Give each partition to the subscriber that has least."""
    order = enumerate(shares.subscribers[kind])
    least = [
        (shares.sizes[member_id], -1 if member_id == speaker else rank, member_id)
        for rank, member_id in order
    ]
    heapify(least)
    for topic_partition in free:
        size, rank, member_id = least[0]
        shares.give(member_id, topic_partition)
        heapreplace(least, (size + 1, rank, member_id))


def _even_out(shares: _Shares) -> None:
    """Follow chains until there is none; those of one step first, which are quickly found."""
    for kind in shares.subscribers:
        _even_out_kind(shares, kind)
    while chain := _some_chain(shares):
        for step, taker in chain:
            shares.hand_over(step, taker)


def _even_out_kind(shares: _Shares, kind: int) -> None:
    """Let those with most of all who have partitions of a kind give them to those with least."""
    order = [(rank, each) for rank, each in enumerate(shares.subscribers[kind])]
    least = [(shares.sizes[each], rank, each) for rank, each in order]
    most = [(-shares.sizes[each], rank, each) for rank, each in order if kind in shares.held[each]]
    heapify(least)
    heapify(most)
    while most and -most[0][0] > least[0][0] + 1:
        size, rank, giver = most[0]
        smallest, taker_rank, taker = least[0]
        shares.hand_over(_Step(giver, kind), taker)
        heapreplace(least, (smallest + 1, taker_rank, taker))
        if kind in shares.held[giver]:
            heapreplace(most, (size + 1, rank, giver))
        else:
            heappop(most)


def _some_chain(shares: _Shares) -> list[tuple[_Step, str]]:
    """Return a chain from one of the members that have most; empty: all is even."""
    smallest = min(shares.sizes.values(), default=0)
    large = [member_id for member_id, size in shares.sizes.items() if size > smallest + 1]
    for member_id in sorted(large, key=lambda each: -shares.sizes[each]):
        chain = _chain(shares, member_id)
        if chain:
            return chain
    return []


def _chain(shares: _Shares, start: str) -> list[tuple[_Step, str]]:
    """Return the shortest chain from a member to one with two less; if several, the least one."""
    came_by: dict[str, _Step] = {}
    kinds: set[int] = set()
    reached = [start]
    while reached:
        next_reached: list[str] = []
        for giver in reached:
            for kind in sorted(shares.held[giver].keys() - kinds):
                kinds.add(kind)
                new = [m for m in shares.subscribers[kind] if m != start and m not in came_by]
                came_by.update(dict.fromkeys(new, _Step(giver, kind)))
                next_reached += new
        least = min(next_reached, key=lambda each: shares.sizes[each], default=start)
        if shares.sizes[least] < shares.sizes[start] - 1:
            return _steps_to(least, came_by)
        reached = next_reached
    return []


def _steps_to(end: str, came_by: Mapping[str, _Step]) -> list[tuple[_Step, str]]:
    """Return the steps that led to the end of a chain, the last step first."""
    steps = []
    taker = end
    while taker in came_by:
        steps.append((came_by[taker], taker))
        taker = came_by[taker].giver
    return steps
