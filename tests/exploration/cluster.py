"""The whole cluster: the events that can happen in a state, and the rules that must hold in it.

A state is a tuple of numbers. It keeps every message that was sent, so each may arrive never, late,
and again. A service that has handled a message has it in memory; its answers leave when it
has synced, and a crash before takes both. Markers and inquiries are sent at once, as often as the
network likes.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from exploration.clients import Client, Phase, answered, moves
from exploration.messages import (
    BROKER,
    GROUP,
    PARTICIPANTS,
    Ask,
    Claim,
    Complete,
    Ended,
    InitDone,
    Marker,
    MarkerDone,
    Message,
    Tick,
    Told,
    Write,
    Written,
)
from exploration.nodes import Node
from exploration.services import Broker, Coordinator, Fact, Group, ViolationError

UNSYNCED_MAX = 2
"""So many messages may a service have handled that are not on disk."""
STARTS_MAX = 2
"""So often does the coordinator start."""
_ROUNDS_MAX = 8
_ACTIVE = (Phase.OPEN, Phase.DOOMED, Phase.COMMITTING, Phase.ABORTING)


COORDINATOR = "coordinator"
SERVICES = (COORDINATOR, *PARTICIPANTS)
"""In the order in which they stand in a state."""


class Place(NamedTuple):
    """One service in a state of everything."""

    durable: int
    live: int
    answers: int
    """A bit for each message that leaves once all is durable."""
    unsynced: int


class State(NamedTuple):
    """Everything."""

    coordinator: Place
    broker: Place
    group: Place
    first: int
    """Numbers of the clients' states."""
    second: int
    sent: int
    """A bit for each message that was ever sent."""


Following = tuple[object, State]
"""An event, and the state after it."""


class Cluster:
    """The rules by which states follow one another."""

    def __init__(self) -> None:
        self.coordinator = Node(Coordinator())
        self.participants = {BROKER: Node(Broker()), GROUP: Node(Group())}
        self._nodes = (self.coordinator, *self.participants.values())
        self._messages: list[Message] = []
        self._numbers: dict[Message, int] = {}
        self._clients: list[Client] = []
        self._client_numbers: dict[Client, int] = {}
        # Each is asked for again and again, and depends on a few numbers only.
        self._step = cache(self._find_step)
        self._started = cache(self._find_started)
        self._sends = cache(self._find_sends)
        self._waiting = cache(self._find_waiting)
        self._markers = cache(self._find_markers)
        self._asks = cache(self._find_asks)
        self._moves = cache(self._find_moves)
        self._answered = cache(self._find_answered)
        self._agree = cache(self._check_agreement)
        self._settle = cache(self._check_settling)
        self._told = cache(self._check_told)
        self._tick = self._number(Tick())

    def first(self) -> State:
        """Return the state in which everything begins."""
        started = self._started(self.coordinator.first)
        assert started is not None
        broker, group = (node.first for node in self.participants.values())
        return State(
            Place(started, started, 0, 0),
            Place(broker, broker, 0, 0),
            Place(group, group, 0, 0),
            self._client_number(Client(0)),
            self._client_number(Client(1)),
            0,
        )

    def following(self, state: State) -> Iterator[Following]:
        """Yield each event that can happen, and the state after it. Raises ViolationError."""
        sent = state.sent
        while sent:
            bit = sent & -sent
            sent ^= bit
            number = bit.bit_length() - 1
            after = self._delivered(state, number)
            if after is not None:
                yield self._messages[number], after
        for at in (0, 1):
            for what, client, bits in self._moves(state[3 + at]):
                yield f"client {at} {what}", _with_client(state, at, client, bits)
        yield from self._by_itself(state)

    def check(self, state: State) -> None:
        """Check the rules that must hold in every state. Raises ViolationError."""
        coordinator, broker, group = state.coordinator, state.broker, state.group
        self._agree(coordinator.durable, coordinator.live, BROKER, broker.live)
        self._agree(coordinator.durable, coordinator.live, GROUP, group.live)
        self._settle(coordinator.durable, broker.durable, group.durable)
        self._told(coordinator.durable, state.first)
        self._told(coordinator.durable, state.second)
        first, second = self._clients[state.first], self._clients[state.second]
        if first.epoch == second.epoch and first.phase in _ACTIVE and second.phase in _ACTIVE:
            raise ViolationError(f"two instances are at epoch {first.epoch}")

    # -- events ----------------------------------------------------------------------------------

    def _delivered(self, state: State, number: int) -> State | None:
        """Return the state after a message has arrived; None if the message changes nothing."""
        match self._messages[number]:
            case InitDone(instance) | Written(instance) | Ended(instance):
                before = state[3 + instance]
                after = self._answered(before, number)
                return None if after == before else _with_client(state, instance, after, 0)
            case Write(_, _, participant) | Marker(_, participant) | Told(_, participant):
                return self._handled(state, SERVICES.index(participant), number)
            case MarkerDone():
                return None  # It is looked for when a transaction completes.
            case _:
                return self._handled(state, 0, number)

    def _handled(self, state: State, at: int, number: int) -> State | None:
        place = _place(state, at)
        if place.unsynced == UNSYNCED_MAX:
            return None
        live, answers = self._step(at, place.live, number)
        if live != place.live or place.unsynced:
            unsynced = place.unsynced + 1
            after = Place(place.durable, live, place.answers | answers, unsynced)
            return _with_place(state, at, after, 0)
        return None if not answers & ~state.sent else _with_place(state, at, place, answers)

    def _by_itself(self, state: State) -> Iterator[Following]:
        """Yield the events that need no message."""
        ticked = self._handled(state, 0, self._tick)
        if ticked is not None:
            yield "time passes at the coordinator", ticked
        for number, done in self._waiting(state.coordinator.live):
            if not done & ~state.sent:
                completed = self._handled(state, 0, number)
                if completed is not None:
                    yield self._messages[number], completed
        for at, name in enumerate(SERVICES):
            place = _place(state, at)
            if place.unsynced:
                synced = Place(place.live, place.live, 0, 0)
                sends = place.answers | self._sends(at, place.live)
                yield f"{name} syncs", _with_place(state, at, synced, sends)
            if at == 0 or place.unsynced:
                started = self._started(place.durable) if at == 0 else place.durable
                if started is not None:
                    after = Place(started, started, 0, 0)
                    sends = self._sends(at, started)
                    yield f"{name} crashes", _with_place(state, at, after, sends)

    # -- rules -----------------------------------------------------------------------------------

    def _check_agreement(self, durable: int, live: int, name: str, participant: int) -> None:
        commits, may_commit = self._commits(durable), self._commits(live)
        for fact in self.participants[name].facts[participant]:
            if fact.what != "ended":
                continue
            if fact.committed and name not in commits.get(fact.epoch, ()):
                raise ViolationError(f"{name} commits epoch {fact.epoch}, which is not decided")
            if not fact.committed and name in may_commit.get(fact.epoch, ()):
                raise ViolationError(f"{name} aborts epoch {fact.epoch}, which commits there")

    def _check_told(self, durable: int, client: int) -> None:
        commits = self._commits(durable)
        for epoch, committed in self._clients[client].told:
            if committed != bool(commits.get(epoch)):
                word = "committed" if committed else "aborted"
                raise ViolationError(f"a client was told that epoch {epoch} is {word}: {commits}")

    def _commits(self, coordinator: int) -> dict[int, tuple[str, ...]]:
        """Return the participants that commit, by epoch."""
        facts = self.coordinator.facts[coordinator]
        return {fact.epoch: fact.participants for fact in facts if fact.what == "decided"}

    def _check_settling(self, coordinator: int, broker: int, group: int) -> None:
        """Let everything that was decided arrive, and time pass: nothing may stay open."""
        states = {BROKER: broker, GROUP: group}
        for _ in range(_ROUNDS_MAX):
            before = coordinator, dict(states)
            coordinator = self.coordinator.step(coordinator, Tick()).after
            for marker in self._markers(coordinator):
                name = marker.participant
                states[name] = self.participants[name].step(states[name], marker).after
            coordinator = self._inquired(coordinator, states)
            if (coordinator, states) == before:
                break
        commits = self._commits(coordinator)
        for name, state in states.items():
            self._agree(coordinator, coordinator, name, state)
            if self._asks(name, state):
                raise ViolationError(f"{name} waits for ever: {self._asks(name, state)}")
            for epoch, named in commits.items():
                ended = Fact("ended", epoch, committed=True)
                if name in named and ended not in self.participants[name].facts[state]:
                    raise ViolationError(f"{name} has lost epoch {epoch}, which commits")

    def _inquired(self, coordinator: int, states: dict[str, int]) -> int:
        """Let all participants ask about open epochs; return the coordinator's state after it."""
        for name, node in self.participants.items():
            for ask in self._asks(name, states[name]):
                step = self.coordinator.step(coordinator, ask)
                coordinator = step.after
                for told in step.answers:
                    states[name] = node.step(states[name], told).after
        return coordinator

    # -- caches ----------------------------------------------------------------------------------

    def _find_step(self, at: int, live: int, number: int) -> tuple[int, int]:
        step = self._nodes[at].step(live, self._messages[number])
        return step.after, self._bits(step.answers)

    def _find_started(self, durable: int) -> int | None:
        """Return the coordinator's state after one more start; None if it is one too many."""
        if self.coordinator.machine(durable)._state.coordinator_epochs.get(0, 0) >= STARTS_MAX:
            return None
        return self.coordinator.step(durable, Claim()).after

    def _find_sends(self, at: int, durable: int) -> int:
        """Return the messages that a service sends of itself, by its state on disk."""
        sends = self._markers(durable) if at == 0 else self._asks(SERVICES[at], durable)
        return self._bits(sends)

    def _find_waiting(self, coordinator: int) -> list[tuple[int, int]]:
        """Return the `Complete` of each transaction, and the marker answers that it waits for."""
        done: dict[int, int] = {}
        for marker in self._markers(coordinator):
            bit = self._bits((MarkerDone(marker.epoch, marker.participant),))
            done[marker.epoch] = done.get(marker.epoch, 0) | bit
        return [(self._number(Complete(epoch)), bits) for epoch, bits in done.items()]

    def _find_markers(self, coordinator: int) -> tuple[Marker, ...]:
        service = self.coordinator.service
        assert isinstance(service, Coordinator)
        return tuple(service.markers(self.coordinator.machine(coordinator)))

    def _find_asks(self, name: str, participant: int) -> tuple[Ask, ...]:
        node = self.participants[name]
        service = node.service
        assert isinstance(service, (Broker, Group))
        epochs = service.open_epochs(node.machine(participant))
        return tuple(Ask(epoch, name) for epoch in epochs)

    def _find_moves(self, client: int) -> list[tuple[str, int, int]]:
        return [
            (what, self._client_number(after), self._bits(messages))
            for what, after, messages in moves(self._clients[client])
        ]

    def _find_answered(self, client: int, number: int) -> int:
        return self._client_number(answered(self._clients[client], self._messages[number]))

    # -- numbers ---------------------------------------------------------------------------------

    def _number(self, message: Message) -> int:
        number = self._numbers.get(message)
        if number is None:
            number = self._numbers[message] = len(self._messages)
            self._messages.append(message)
        return number

    def _bits(self, messages: Iterable[Message]) -> int:
        bits = 0
        for message in messages:
            bits |= 1 << self._number(message)
        return bits

    def _client_number(self, client: Client) -> int:
        number = self._client_numbers.get(client)
        if number is None:
            number = self._client_numbers[client] = len(self._clients)
            self._clients.append(client)
        return number


def _place(state: State, at: int) -> Place:
    return (state.coordinator, state.broker, state.group)[at]


def _with_place(state: State, at: int, place: Place, sends: int) -> State:
    coordinator, broker, group, first, second, sent = state
    match at:
        case 0:
            coordinator = place
        case 1:
            broker = place
        case _:
            group = place
    return State(coordinator, broker, group, first, second, sent | sends)


def _with_client(state: State, at: int, client: int, sends: int) -> State:
    coordinator, broker, group, first, second, sent = state
    clients = (first, client) if at else (client, second)
    return State(coordinator, broker, group, *clients, sent | sends)
