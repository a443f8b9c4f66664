"""The plan of leaders that gives every broker its share.

Group coordinators and coordinators lead the partitions of one internal topic each: the plan treats
them as brokers, each role by itself.

After a plan, the brokers lead equally many partitions of each topic, and equally many of all topics
together, to within one. No other such plan has fewer moves.

How. A topic gives every broker as many partitions as divide evenly, and has a remainder: so many
brokers get one more, and which ones is all there is to decide. A broker that has one more of the
topic now can keep it; any other costs a move. So each topic first leaves its remainder where it is.
That is cheapest, but some brokers may get more of the remainders than others. As long as they do,
places are passed on along the cheapest chain of brokers, from one with too many to one with too
few: a minimum-cost flow by successive shortest paths (Ahuja, Magnanti, Orlin: Network Flows, 9.7),
with brokers for nodes, and topics for arcs. That all topics can be even at once is the theorem of
integral flows: to give each broker the same fraction of each remainder is a flow.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

from semel_runtime.cluster.metadata_image import PartitionLeader, Topic

_SHARED = -1
"""No broker, but the places that not every broker can have, if they do not divide evenly: one that
has one gives it there, one that has none may take it from there."""


class Placement(NamedTuple):
    """Where a partition is to be led."""

    topic_id: str
    partition: int
    instance_id: int


def planned(topics: Sequence[Topic], brokers: Sequence[int]) -> Iterator[Placement]:
    """Yield the changes, by topic and partition.

    A partition that moves counts at its target. ``brokers`` are the instances that may lead; any
    other ends with nothing.
    """
    assert brokers, "somebody has to lead"
    ordered = sorted(topics, key=lambda each: each.name)
    held = [Counter(leader.next_leader_id for leader in each.partitions) for each in ordered]
    shares = _Shares([len(each.partitions) for each in ordered], held=held, brokers=sorted(brokers))
    shares.level()
    for index, topic in enumerate(ordered):
        yield from _placed(topic, held[index], shares.of_topic(index))


def _placed(
    topic: Topic, held: Mapping[int, int], shares: Mapping[int, int]
) -> Iterator[Placement]:
    """Yield the partitions that leave brokers with too many, for those with too few."""
    lacking = {each: share - held.get(each, 0) for each, share in shares.items()}
    leaving: dict[int, PartitionLeader] = {}
    left = {each: count - shares.get(each, 0) for each, count in held.items()}
    # A partition on its way goes first: less of it is copied, and going back costs nothing. The
    # lowest number goes last, and its holder keeps a share: so the controller keeps its partition
    # 0.
    for index in sorted(
        range(len(topic.partitions)),
        key=lambda i: (not _could_return(topic.partitions[i], lacking), _is_settled(topic, i), -i),
    ):
        broker_id = topic.partitions[index].next_leader_id
        if left[broker_id] > 0:
            left[broker_id] -= 1
            leaving[index] = topic.partitions[index]
    returning = {}
    for index, leader in leaving.items():
        if _could_return(leader, lacking):
            lacking[leader.leader_id] -= 1
            returning[index] = leader.leader_id
    places = (each for each in sorted(lacking) for _ in range(lacking[each]))
    for index in sorted(leaving):
        broker_id = returning[index] if index in returning else next(places)
        yield Placement(topic.topic_id, index, broker_id)


def _could_return(leader: PartitionLeader, lacking: Mapping[int, int]) -> bool:
    return leader.moving_to is not None and lacking.get(leader.leader_id, 0) > 0


def _is_settled(topic: Topic, index: int) -> bool:
    return topic.partitions[index].moving_to is None


class _Shares:
    """The brokers that get one more partition of each topic."""

    def __init__(
        self, sizes: Sequence[int], *, held: Sequence[Mapping[int, int]], brokers: Sequence[int]
    ) -> None:
        self._brokers = brokers
        self._even = [size // len(brokers) for size in sizes]
        self._held = held
        self._more: list[set[int]] = []
        """The brokers with one more, by topic."""
        self._total: Counter[int] = Counter(dict.fromkeys(brokers, 0))
        """How many topics each broker has one more of."""
        self._arcs: dict[tuple[int, int], dict[int, dict[int, None]]] = defaultdict(dict)
        """Topics by which a place can be passed from one broker to another, by cost."""
        for topic, size in enumerate(sizes):
            self._leave(topic, size % len(brokers))
        for topic in range(len(sizes)):
            self._add_arcs(topic)
        remainders = self._total.total()
        self._least = remainders // len(brokers)
        self._most = -(-remainders // len(brokers))

    def of_topic(self, topic: int) -> dict[int, int]:
        """Return how many partitions of a topic each broker is to lead."""
        more = self._more[topic]
        return {broker: self._even[topic] + (broker in more) for broker in self._brokers}

    def level(self) -> None:
        """Pass places on until every broker has its share of the remainders."""
        while (chain := self._cheapest_chain()) is not None:
            for giver, taker in pairwise(chain):
                if _SHARED not in {giver, taker}:
                    self._pass_on(giver, taker)

    def _leave(self, topic: int, count: int) -> None:
        """Give the remainder to its present holders, then to brokers with the least."""
        order = sorted(
            self._brokers, key=lambda each: (self._cost(topic, each), self._total[each], each)
        )
        self._more.append(set(order[:count]))
        self._total.update(order[:count])

    def _cost(self, topic: int, broker_id: int) -> int:
        """Return how many moves it takes that a broker leads one more."""
        return 0 if self._held[topic].get(broker_id, 0) > self._even[topic] else 1

    def _cheapest_chain(self) -> list[int] | None:
        """Return the nodes along which a place is passed on; None once all have their shares."""
        givers = [broker for broker in self._brokers if self._total[broker] > self._most]
        takers = [broker for broker in self._brokers if self._total[broker] < self._least]
        if not givers and not takers:
            return None
        return self._shortest(givers or [_SHARED], takers or [_SHARED])

    def _shortest(self, givers: Sequence[int], takers: Sequence[int]) -> list[int]:
        """Return a cheapest chain from any giver to any taker (Bellman and Ford)."""
        costs = self._costs()
        distance: dict[int, float] = dict.fromkeys(givers, 0)
        before: dict[int, int] = {}
        changed = True
        while changed:
            changed = False
            for (giver, taker), cost in costs.items():
                if distance.get(giver, inf) + cost < distance.get(taker, inf):
                    distance[taker], before[taker] = distance[giver] + cost, giver
                    changed = True
        chain = [min(takers, key=lambda each: distance.get(each, inf))]
        while chain[0] in before:
            chain.insert(0, before[chain[0]])
        return chain

    def _costs(self) -> dict[tuple[int, int], int]:
        """Return what it costs to pass a place on, by giver and taker."""
        costs = {pair: min(topics) for pair, topics in self._arcs.items() if topics}
        for broker in self._brokers:
            if self._least <= self._total[broker] < self._most:
                costs[broker, _SHARED] = 0
            if self._least < self._total[broker] <= self._most:
                costs[_SHARED, broker] = 0
        return costs

    def _pass_on(self, giver: int, taker: int) -> None:
        topics = self._arcs[giver, taker]
        topic = next(iter(topics[min(topics)]))
        self._remove_arcs(topic)
        self._more[topic] ^= {giver, taker}
        self._total.update({giver: -1, taker: 1})
        self._add_arcs(topic)

    def _pairs(self, topic: int) -> Iterator[tuple[tuple[int, int], int]]:
        for giver in sorted(self._more[topic]):
            for taker in self._brokers:
                if taker not in self._more[topic]:
                    yield (giver, taker), self._cost(topic, taker) - self._cost(topic, giver)

    def _add_arcs(self, topic: int) -> None:
        for pair, cost in self._pairs(topic):
            self._arcs[pair].setdefault(cost, {})[topic] = None

    def _remove_arcs(self, topic: int) -> None:
        for pair, cost in self._pairs(topic):
            topics = self._arcs[pair]
            del topics[cost][topic]
            if not topics[cost]:
                del topics[cost]
