"""A cluster in virtual time on which transactions are played, each with one fault."""

import gc
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from google.protobuf.message import Message
from simulation.answers import Answers
from simulation.disk import simulated_disks
from simulation.invariants import Invariants
from simulation.logs import quiet
from simulation.network import Exchange, Network, Weather
from simulation.processes import BOOTSTRAP, NAMES, START_MS, Machinery, Service
from simulation.workloads import CLIENT, TOPICS
from simulation.world import Life, SimulatedLoop, Step, bury

from aiosemel import SemelClient, SemelError
from semel_broker.machine import BrokerMachine
from semel_common.wire import methods
from semel_coordinator.coordinator_machine import CoordinatorMachine
from semel_group.machine import GroupMachine
from semel_local.layout import Role
from semel_runtime.testing.virtual_time import LoopClock, after

INTERVAL_MS = 2_000
"""After so long a participant asks; see `simulation.processes`."""
TIMEOUT_MS = 1_000
"""Of transactions."""
REQUEST_TIMEOUT_MS = 1_000
"""After so long a service takes a message for lost."""
SLACK_MS = 1_500
"""Ticks of the loops that look for due work, and the delays of the messages."""

_OF_TRANSACTIONS = frozenset(
    method.path
    for method in (
        methods.INIT_PRODUCER_ID,
        methods.ADD_PARTITIONS_TO_TXN,
        methods.ADD_OFFSETS_TO_TXN,
        methods.PRODUCE,
        methods.TXN_OFFSET_COMMIT,
        methods.END_TXN,
        methods.BROKER_WRITE_TXN_MARKERS,
        methods.GROUP_WRITE_TXN_MARKERS,
        methods.INQUIRE_TRANSACTIONS,
    )
)

Play = Callable[[SemelClient], Awaitable[None]]
"""The steps of the client of a case."""


class Nth(NamedTuple):
    """A message by its kind, as in "answer of Produce", and its place among those of its kind.

    By kind, because messages to and from several services come in any order.
    """

    kind: str
    number: int


@dataclass(slots=True, kw_only=True)
class Wrong:
    """The fault of a case."""

    dies_at: int | None = None
    """The client vanishes before this step of its life."""
    loses: "Nth | None" = None
    """This message of a transaction is lost, once."""
    always_loses: frozenset[str] = frozenset()
    """Requests of these methods never arrive."""


@dataclass(slots=True)
class Case:
    """The result of a case."""

    wrong: Wrong
    steps: int = 0
    """Of the client's life."""
    messages: Counter[str] = field(default_factory=Counter)
    """Of the transaction, by kind."""
    finished: bool = False
    """Whether the client came to its end."""
    has_lost: bool = False
    error: SemelError | None = None


class StageLoop(SimulatedLoop):
    """Counts the steps of the client that is watched, and ends it before one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.case: Case | None = None
        self.client: Life | None = None

    async def vanish(self) -> None:
        """End the client that is watched, which calls this: nothing of it is reached any more."""
        assert self.client is not None
        self.end_life(self.client)
        await self.create_future()

    def _run_step(self, step: Step) -> None:
        case = self.case
        if case is not None and self.client is not None and step.life is self.client:
            if self.client.alive and case.steps == case.wrong.dies_at:
                self.end_life(self.client)
            case.steps += 1
        super()._run_step(step)


class _Network(Network):
    """Loses the messages that a case wants to lose."""

    case: Case | None = None

    def _send(self, exchange: Exchange) -> None:
        if not self._is_lost(exchange, "request"):
            super()._send(exchange)

    def _reply(self, exchange: Exchange, server_name: str, message: Message) -> None:
        if not self._is_lost(exchange, "answer"):
            super()._reply(exchange, server_name, message)

    def _is_lost(self, exchange: Exchange, way: str) -> bool:
        case = self.case
        if case is None or exchange.method.path not in _OF_TRANSACTIONS:
            return False
        if way == "request" and exchange.method.name in case.wrong.always_loses:
            return True
        kind = f"{way} of {exchange.method.name}"
        nth = Nth(kind, case.messages[kind])
        case.messages[kind] += 1
        if nth != case.wrong.loses:
            return False
        case.has_lost = True
        return True


@dataclass(slots=True)
class Stage:
    """The cluster."""

    loop: StageLoop
    network: _Network
    services: list[Service]
    invariants: Invariants
    failures: list[str]
    random: Random = field(default_factory=lambda: Random(7))
    _cases: int = 0

    async def open(self) -> None:
        """Start everything, and make the topics."""
        for service in self.services:
            service.start()
        while not all(service.ready for service in self.services):
            await after(50)
        async with self.client("operator") as operator:
            for topic, partitions in TOPICS.items():
                await operator.admin().create_topic(topic, partitions=partitions)

    def client(self, name: str) -> SemelClient:
        """Make a client."""
        return SemelClient(
            BOOTSTRAP,
            options=CLIENT,
            connector=self.network.connector(name),
            clock=LoopClock(START_MS),
            random=Random(self.random.getrandbits(64)),
        )

    async def play(self, play: Play, wrong: Wrong) -> Case:
        """Play one case until the client has ended or vanished."""
        self._cases += 1
        case = Case(wrong)
        life = Life(f"client-{self._cases}", self._cases)
        self.loop.case, self.loop.client, self.network.case = case, life, case
        task = self.loop.start(life, self._live(play, case, life))
        while not task.done() and life.alive:
            await after(20)
        self.loop.client = None
        if life.alive:
            self.loop.end_life(life)
        return case

    async def settled(self, case: Case, within_ms: float) -> None:
        """Wait until nothing is open anywhere; it must be so in time. Then compare both sides."""
        until = self.loop.time() + within_ms / 1000
        while self.open_things():
            assert self.loop.time() < until, f"{case}: {self.open_things()}"
            await after(50)
        self.loop.case = self.network.case = None
        assert not self.failures, self.failures
        assert not self.invariants.violations, self.invariants.violations
        self._compare()

    def open_things(self) -> list[str]:
        """Return the transactions without an outcome, each with its service."""
        found = []
        for service in self.services:
            machine = service.app._machine  # type: ignore[union-attr]  # every app has one
            if isinstance(machine, BrokerMachine):
                logs = machine._logs
                found += [
                    f"{service.name}: {open_transaction}"
                    for log in logs
                    for open_transaction in log.open_transactions
                ]
            elif isinstance(machine, GroupMachine):
                found += [f"{service.name}: offsets"] * machine.transactions.has_open_transactions()
            elif isinstance(machine, CoordinatorMachine):
                state = machine.transactions._state
                found += [f"{service.name}: {each}" for each in (*state.ongoing, *state.decided)]
        return found

    def outcomes(self, transaction: tuple[int, int]) -> set[bool]:
        """Return which outcomes participants have of a transaction."""
        durables = [self.invariants.durable(str(service.name)) for service in self.services]
        return {
            committed
            for durable in durables
            for (_, key), committed in durable.ended.items()
            if key == transaction
        }

    def _compare(self) -> None:
        """Participants and coordinator must agree, and every log be readable to its end."""
        for transaction, commits in self.invariants.decided.items():
            assert self.outcomes(transaction) <= {commits}, transaction
        for service in self.services:
            if service.name.role is Role.BROKER:
                machine = service.app._machine  # type: ignore[union-attr]  # as above
                for log in machine._logs:
                    assert log.last_stable_offset == log.log_end_offset

    async def _live(self, play: Play, case: Case, life: Life) -> None:
        try:
            async with self.client(life.name) as client:
                await play(client)
                case.finished = True
        except SemelError as error:
            case.error = error


@contextmanager
def a_stage() -> Iterator[Stage]:
    """Open a stage, and clear it away."""
    with quiet(), simulated_disks(Random(5)):
        yield from _stage()


def _stage() -> Iterator[Stage]:
    gc.freeze()  # The collector need not look at the objects that exist by now: they stay.
    loop = StageLoop()
    loop.set_exception_handler(lambda *_: None)
    invariants = Invariants()
    failures: list[str] = []
    network = _Network(loop, Random(5), _untold)
    network.general = Weather(delay_ms=(0.4, 0.4), slow=0.0)
    network.failures = failures
    network.observer = Answers(invariants)
    services = _services(loop, network, invariants, failures)
    stage = Stage(loop, network, services, invariants, failures)
    try:
        loop.run_until_complete(stage.open())
        yield stage
    finally:
        # A caller may still hold the stage: all objects on it are freed here, without complaints.
        while services:
            services.pop().volume.tables.handles.clear()
        network.clear()
        bury(loop)


def _services(
    loop: StageLoop, network: _Network, invariants: Invariants, failures: list[str]
) -> list[Service]:
    machinery = Machinery(
        loop=loop,
        network=network,
        random=Random(6),
        invariants=invariants,
        trace=_untold,
        failures=failures,
    )
    return [Service(name, machinery) for name in NAMES]


def _untold(*_: object) -> None:
    pass
