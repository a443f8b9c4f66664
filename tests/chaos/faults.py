"""The faults of a run, of every kind: drawn from the seed, each recorded.

The seed says which faults there are, when, to whom and for how long. Where exactly one hits,
between which two steps of a protocol, is chance.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from random import Random
from signal import Signals

from semel_checker.history import Recorder
from semel_checker.observations import FaultEnded, FaultInjected, FaultKind

from aiosemel import RetriableError, SemelClient, TopicPartition
from chaos.clients import TOPICS, Clients
from chaos.database import Database
from chaos.proxy import Link
from chaos.stage import (
    CLIENTS,
    COUNTS,
    GROUP_PARTITIONS,
    TRANSACTION_LOG_PARTITIONS,
    Stage,
)
from semel_common.ids import InternalTopic
from semel_local.layout import CONTROLLER, Role

DURATIONS_S = (0.1, 0.4, 1.0, 3.0)
MOVE_SHARE = 0.3
CHANGED_SHARE = 0.3
"""How many moves of partitions are given up, or go elsewhere, soon after they began."""
BURST_SHARE = 0.25
"""How many faults come without waiting for work."""
WORK_BYTES = 8_000
"""The work between two faults, as it is recorded: some ten transactions."""
WORK_WAIT_S = 2.0
WORK_POLL_S = 0.02
PRIMARY = "primary"
"""The name of whichever server of the database is the primary."""

Fault = Callable[[Random], Awaitable[None]]


class Faults:
    """The faults of one run."""

    def __init__(
        self, stage: Stage, clients: Clients, recorder: Recorder, operator: SemelClient
    ) -> None:
        self._stage = stage
        self._operator = operator
        self._clients = clients
        self._recorder = recorder
        self._over = asyncio.Event()
        self._number = 0
        self.injected: Counter[str] = Counter()
        """How many there were, by kind."""
        self.kills: Counter[str] = Counter()
        """The number of kills of each service."""

    async def inject(self, random: Random, *, window_s: float, interval_s: float) -> None:
        """Inject faults for a while; returns when no fault is active.

        Between two there is ``interval_s`` on the average, and mostly some work: faults that only
        hit a cluster that stands still find nothing.
        """
        kinds = self._kinds()
        faults, weights = [fault for fault, _ in kinds], [weight for _, weight in kinds]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._end_after(window_s), name="end of the window")
            while True:
                fault, own = random.choices(faults, weights)[0], Random(random.getrandbits(64))
                await self._pause(random.expovariate(1 / interval_s))
                if random.random() > BURST_SHARE:
                    await self._some_work()
                if self._over.is_set():
                    break
                group.create_task(_run(fault, own), name="fault")

    async def _end_after(self, window_s: float) -> None:
        await asyncio.sleep(window_s)
        self._over.set()

    async def _some_work(self) -> None:
        """Wait until clients have recorded something more, but not for ever."""
        goal, tries = self._clients.recorded_bytes() + WORK_BYTES, WORK_WAIT_S / WORK_POLL_S
        while self._clients.recorded_bytes() < goal and (tries := tries - 1) > 0:
            await self._pause(WORK_POLL_S)

    def _kinds(self) -> Sequence[tuple[Fault, int]]:
        disks: list[tuple[Fault, int]] = [
            (self._fill_disk, 2),
            (self._fail_syncs, 2),
            (self._delay_syncs, 1),
        ]
        database: list[tuple[Fault, int]] = [
            (self._kill_primary, 4),
            (self._stop_standby, 3),
            (self._pause_replication, 3),
        ]
        return [
            (self._kill_service, 12),
            (self._kill_many, 4),
            (self._kill_client, 8),
            (self._pause_service, 4),
            (self._pause_client, 2),
            (self._roll, 1),
            (self._exchange, 2),
            (self._cut, 4),
            (self._slow, 2),
            (self._lose_replies, 4),
            (self._reset, 2),
            (self._move_partitions, 6),
            (self._move_groups, 3),
            (self._move_transactions, 3),
            *(disks if self._stage.has_disk_faults else ()),
            *(database if self._stage.database is not None else ()),
        ]

    # -- services and clients --------------------------------------------------------------------

    async def _kill_service(self, random: Random) -> None:
        await self._kill(random.choice(self._stage.names), random)

    async def _kill_many(self, random: Random) -> None:
        victims = random.sample(self._stage.names, random.randint(2, len(self._stage.names)))
        await asyncio.gather(*(self._kill(victim, random) for victim in victims))

    async def _kill(self, name: str, random: Random) -> None:
        pause_s, move = random.uniform(0, 0.5), random.random() < MOVE_SHARE
        if not self._stage.is_busy(name):
            self._note(FaultKind.KILL, name, f"kill {name.rpartition('-')[0]}")
            self.kills[name] += 1
            await self._stage.kill(name, pause_s=pause_s, move=move)

    async def _kill_client(self, random: Random) -> None:
        name, pause_s = random.choice(self._clients.names), random.uniform(0, 1.0)
        self._note(FaultKind.CLIENT_KILL, name, "kill client")
        self.kills[name] += 1
        await self._clients.kill(name, pause_s=pause_s)

    async def _pause_service(self, random: Random) -> None:
        name = random.choice(self._stage.names)
        with self._lasting(FaultKind.PAUSE, name, "stop service (SIGSTOP)"):
            self._stage.signal(name, Signals.SIGSTOP)
            await self._last(random)
            self._stage.signal(name, Signals.SIGCONT)

    async def _pause_client(self, random: Random) -> None:
        name = random.choice(self._clients.names)
        with self._lasting(FaultKind.PAUSE, name, "stop client (SIGSTOP)"):
            self._clients.signal(name, Signals.SIGSTOP)
            await self._last(random)
            self._clients.signal(name, Signals.SIGCONT)

    async def _roll(self, random: Random) -> None:
        """Restart all services in order, one after the other."""
        move = random.random() < MOVE_SHARE
        with self._lasting(FaultKind.RESTART, "all services", "rolling restart"):
            for name in random.sample(self._stage.names, len(self._stage.names)):
                if not self._over.is_set():
                    await self._stage.restart_in_order(name, move=move)

    async def _exchange(self, random: Random) -> None:
        """Give services the addresses of one another, whatever they are."""
        movable = [name for name in self._stage.names if name != str(CONTROLLER)]
        names = random.sample(movable, random.randint(2, 3))
        if not any(map(self._stage.is_busy, names)):
            with self._lasting(FaultKind.RESTART, ", ".join(names), "exchange addresses"):
                await self._stage.rotate_addresses(*names)

    # -- links -----------------------------------------------------------------------------------

    async def _cut(self, random: Random) -> None:
        """Cut all that leads to some instances from some roles, in one direction or both."""
        links, way = self._links(random), random.choice(("requests", "replies", "both"))
        with self._lasting(FaultKind.CUT, _names(links), f"cut {way}"):
            for link in links:
                if way != "replies":
                    link.requests.cut()
                if way != "requests":
                    link.replies.cut()
            await self._last(random)
            _mend(links)

    async def _slow(self, random: Random) -> None:
        links, delay_s = self._links(random), random.choice((0.02, 0.1, 0.4))
        with self._lasting(FaultKind.SLOW, _names(links), "slow"):
            for link in links:
                link.requests.delay_s = link.replies.delay_s = delay_s
            await self._last(random)
            _mend(links)

    async def _lose_replies(self, random: Random) -> None:
        """Let requests have their effect, and lose their replies."""
        links = self._links(random)
        with self._lasting(FaultKind.DROP_REPLY, _names(links), "drop replies"):
            for link in links:
                link.replies.loses = True
            await self._pause(random.uniform(0.02, 0.5))
            _mend(links)

    async def _reset(self, random: Random) -> None:
        links = self._links(random)
        self._note(FaultKind.OTHER, _names(links), "reset connections")
        for link in links:
            link.reset()

    def _links(self, random: Random) -> list[Link]:
        """Choose one link, all to one instance, or all from one role; mostly those of clients."""
        links = list(self._stage.links.values())
        busy = [link for link in links if link.source == CLIENTS]
        one = random.choice(random.choices((busy, links), (2, 1))[0])
        chosen = (
            [one],
            [link for link in links if link.target == one.target],
            [link for link in links if link.source == one.source],
        )
        return random.choices(chosen, (2, 1, 1))[0]

    # -- partitions ------------------------------------------------------------------------------

    async def _move_partitions(self, random: Random) -> None:
        """Let some partitions move to other brokers, and perhaps change that soon after."""
        places = [TopicPartition(topic, at) for topic, n in TOPICS.items() for at in range(n)]
        await self._move(places, Role.BROKER, "move partitions", random)

    async def _move_groups(self, random: Random) -> None:
        """Move partitions of the groups in the same way."""
        topic = InternalTopic.CONSUMER_OFFSETS
        places = [TopicPartition(topic, at) for at in range(GROUP_PARTITIONS)]
        await self._move(places, Role.GROUP_COORDINATOR, "move groups", random)

    async def _move_transactions(self, random: Random) -> None:
        """Move partitions of the transaction log in the same way, except the controller's own."""
        topic = InternalTopic.TRANSACTION_STATE
        places = [TopicPartition(topic, at) for at in range(1, TRANSACTION_LOG_PARTITIONS)]
        await self._move(places, Role.COORDINATOR, "move transactions", random)

    async def _move(
        self, places: Sequence[TopicPartition], role: Role, what: str, random: Random
    ) -> None:
        chosen = random.sample(places, random.randint(1, 3))
        self._note(FaultKind.OTHER, ", ".join(map(str, chosen)), what)
        await self._ask_for(chosen, role, random)
        if random.random() < CHANGED_SHARE:
            await self._pause(random.uniform(0, 0.2))
            await self._ask_for(chosen, role, random)

    async def _ask_for(self, places: Sequence[TopicPartition], role: Role, random: Random) -> None:
        """Name an instance for each, or none: then it is to stay where it is."""
        targets = (*range(COUNTS[role]), None)
        wanted = {place: random.choice(targets) for place in places}
        with suppress(RetriableError):  # The controller may be down.
            await self._operator.admin().moves.alter_partition_reassignments(wanted)

    # -- disks -----------------------------------------------------------------------------------

    async def _fill_disk(self, random: Random) -> None:
        name = random.choice(self._stage.names)
        with self._disk_trouble(FaultKind.DISK_FULL, name, "disk full"):
            self._stage.disks[name].fill()
            await self._last(random)

    async def _fail_syncs(self, random: Random) -> None:
        name = random.choice(self._stage.names)
        with self._disk_trouble(FaultKind.SYNC_ERROR, name, "fsync EIO"):
            self._stage.disks[name].fail_syncs()
            await self._last(random)

    async def _delay_syncs(self, random: Random) -> None:
        name = random.choice(self._stage.names)
        with self._disk_trouble(FaultKind.SLOW_SYNC, name, "fsync slow"):
            self._stage.disks[name].delay_syncs(random.choice((20, 200, 1_000)))
            await self._last(random)

    @contextmanager
    def _disk_trouble(self, kind: FaultKind, name: str, what: str) -> Iterator[None]:
        now = asyncio.get_running_loop().time
        self._stage.troubled[name] = float("inf")
        try:
            with self._lasting(kind, name, what):
                yield
        finally:
            self._stage.disks[name].mend()
            self._stage.troubled[name] = now()

    # -- the database ----------------------------------------------------------------------------

    async def _kill_primary(self, random: Random) -> None:
        del random
        async with self._database_trouble() as database:
            with self._lasting(FaultKind.KILL, PRIMARY, "kill primary, promote standby"):
                self.kills[PRIMARY] += 1
                killed = await database.fail_over()
            await database.restore(killed)

    async def _stop_standby(self, random: Random) -> None:
        async with self._database_trouble() as database:
            with self._lasting(FaultKind.OTHER, "a standby", "stop standby"):
                async with database.without_a_standby(random):
                    await self._last(random)

    async def _pause_replication(self, random: Random) -> None:
        async with self._database_trouble() as database:
            with self._lasting(FaultKind.PAUSE, "both standbys", "pause replication"):
                async with database.without_replication():
                    await self._last(random)

    @asynccontextmanager
    async def _database_trouble(self) -> AsyncIterator[Database]:
        """Wait for a turn; services may end by themselves meanwhile, and a while later."""
        assert self._stage.database is not None, "there is no database"
        async with self._stage.database.turn:
            self._stage.troubled = dict.fromkeys(self._stage.names, float("inf"))
            try:
                yield self._stage.database
            finally:
                now = asyncio.get_running_loop().time()
                self._stage.troubled = dict.fromkeys(self._stage.names, now)

    # -- all of them -----------------------------------------------------------------------------

    async def _last(self, random: Random) -> None:
        await self._pause(random.choice(DURATIONS_S) * random.uniform(0.5, 1.5))

    async def _pause(self, seconds: float) -> None:
        """Wait, but no longer than there may be faults."""
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            pass

    @contextmanager
    def _lasting(self, kind: FaultKind, target: str, what: str) -> Iterator[None]:
        number = self._note(kind, target, what, lasting=True)
        try:
            yield
        finally:
            self._recorder.observed("chaos", FaultEnded(fault=number))

    def _note(self, kind: FaultKind, target: str, what: str, *, lasting: bool = False) -> int:
        self._number += 1
        self.injected[what] += 1
        injected = FaultInjected(fault=self._number, kind=kind, target=target, lasting=lasting)
        self._recorder.observed("chaos", injected)
        return self._number


async def _run(fault: Fault, random: Random) -> None:
    await fault(random)


def _mend(links: Sequence[Link]) -> None:
    for link in links:
        link.mend()


def _names(links: Sequence[Link]) -> str:
    return ", ".join(map(str, links))
