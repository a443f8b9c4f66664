"""With lost, late or repeated messages, no member uses another's partition, and all reach their
target.

The machine is driven by clients of which nothing is assumed but that each waits for one answer at a
time and does as it is told. A seed decides what happens; a failure names it.
"""

from random import Random

import pytest
from group_harness import GROUP, GroupHarness, rebuilt, state_of
from group_member import ClientMember, Request, deliver

from semel_common.ids import TopicPartition

SEEDS = 200
STEPS = 120
MEMBERS_MAX = 4
ROUNDS_MAX = 20
TOPICS = ("orders", "income")


class Reconciliation:
    """Clients come, move, fall silent and go, over a network that loses, delays and repeats."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.group = GroupHarness({"orders": 4})
        self.counts = {"orders": 4}
        self.clients: list[ClientMember] = []
        self.network: list[Request] = []
        self.born = 0

    def step(self) -> None:
        """Let one thing happen."""
        if not self.clients:
            self.come()
            return
        (action,) = self.random.choices(
            (self.arrive, self.speak, self.move, self.come, self.subscribe, self.go, self.expire,
             self.change_topic),
            weights=(40, 20, 20, 4, 2, 2, 2, 2),
        )  # fmt: skip
        action()

    # -- clients ---------------------------------------------------------------------------------

    def come(self) -> None:
        if len(self.clients) < MEMBERS_MAX:
            self.born += 1
            member_id = f"{self.random.randrange(100):02}-{self.born}"
            member = ClientMember(member_id, self.some_topics())
            self.clients.append(member)
            self.network.append(member.speak())

    def speak(self) -> None:
        """Send the next heartbeat; one that was not answered yet is given up, but still travels."""
        self.network.append(self.random.choice(self.clients).speak())

    def move(self) -> None:
        self.random.choice(self.clients).move(at_most=self.random.randint(1, 3))

    def subscribe(self) -> None:
        self.random.choice(self.clients).topics = self.some_topics()

    def go(self) -> None:
        """Leave, or die and expire."""
        gone = self.random.choice(self.clients)
        self.clients.remove(gone)
        gone.is_void = True
        self.random.choice((self.group.leave, self.group.expire))(gone.member_id)

    def expire(self) -> None:
        """Remove a member that believes that it is one; it may speak again, or never."""
        client = self.random.choice(self.clients)
        if self.group.expire(client.member_id):
            client.is_void = True

    def some_topics(self) -> frozenset[str]:
        return frozenset(self.random.sample(TOPICS, self.random.randint(1, len(TOPICS))))

    # -- network and cluster ---------------------------------------------------------------------

    def arrive(self) -> None:
        """Let any heartbeat that was ever sent arrive, perhaps to arrive again later."""
        if not self.network:
            return
        request = self.random.choice(self.network[-5:] if self.chance(0.8) else self.network)
        if self.chance(0.7):
            self.network.remove(request)
        answer = deliver(self.group, request)
        if self.chance(0.7):
            request.sender.hear(request, answer)

    def change_topic(self) -> None:
        """Create a topic, let it grow, or delete it."""
        topic, count = self.random.choice(TOPICS), self.random.randint(0, 5)
        self.counts[topic] = max(count, self.counts.get(topic, 0)) if count else 0
        self.group.topics({name: each for name, each in self.counts.items() if each})

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # -- promises --------------------------------------------------------------------------------

    def nobody_uses_what_another_holds(self) -> None:
        used: dict[TopicPartition, str] = {}
        for client in self.clients:
            if client.is_void or not client.owned:
                continue
            assert client.owned <= self.group.held(client.member_id)
            for partition in client.owned:
                assert used.setdefault(partition, client.member_id) == client.member_id

    def everybody_arrives(self) -> None:
        """Let the network work, and the silent expire: soon everybody holds its target."""
        state = self.group.machine.membership.groups[GROUP]
        for member_id in sorted(state.members.keys() - {each.member_id for each in self.clients}):
            self.group.expire(member_id)
        for _ in range(ROUNDS_MAX):
            for client in self.clients:
                request = client.speak()
                client.hear(request, deliver(self.group, request))
                client.move()
                self.nobody_uses_what_another_holds()
        assert all(client.settled for client in self.clients)
        owned = [partition for client in self.clients for partition in client.owned]
        wanted = {topic for client in self.clients for topic in client.topics}
        assert sorted(owned) == sorted(
            TopicPartition(f"{topic}-id", number)
            for topic in wanted
            for number in range(self.counts.get(topic, 0))
        )

    def a_rebuilt_machine_is_the_same(self) -> None:
        machine, limits = self.group.machine, self.group.limits
        replayed = rebuilt(enumerate(self.group.journal), limits)
        assert state_of(replayed) == state_of(machine)
        assert state_of(rebuilt(machine.snapshot(), limits)) == state_of(machine)


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_no_member_uses_a_partition_of_another_and_every_member_arrives(first: int) -> None:
    for seed in range(first, first + 50):
        run = Reconciliation(seed)
        try:
            for _ in range(STEPS):
                run.step()
                run.nobody_uses_what_another_holds()
            run.everybody_arrives()
            run.a_rebuilt_machine_is_the_same()
        except AssertionError as failure:
            failure.add_note(f"seed {seed}")
            raise
