"""One seed: faults come and go, the database restarts; all must end, and both sides must agree.

In some seeds the database goes back to a backup after that, and each application must say so and go
on as its operator decides.
"""

import asyncio
import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from random import Random

from semel_checker.history import Recorder
from simulation.answers import Answers
from simulation.disk import simulated_disks
from simulation.faults import Faults, Targets
from simulation.invariants import Invariants
from simulation.logs import FailedTasks, quiet
from simulation.network import Network
from simulation.processes import BOOTSTRAP, NAMES, START_MS, Machinery, Service
from simulation.recorded import Records
from simulation.workloads import CLIENT, Client, Surroundings, Work, read_all
from simulation.world import SimulatedLoop, simulated_loop

from aiosemel import (
    AfterRestore,
    ConsumerOptions,
    IsolationLevel,
    RetriableError,
    SemelClient,
    TopicPartition,
)
from aiosemel.database import Dialect, tables_sql
from database_simulation.applications import (
    BLOCK,
    IN,
    OUTBOX,
    STORE,
    TABLE,
    TOPICS,
    TRANSFORM,
    Blocks,
    Consuming,
    Feeder,
    Ledger,
    Relaying,
    Requests,
)
from database_simulation.judge import Found, Went, problems
from database_simulation.machine import FAIR, FOUL, DatabaseError, Machine
from semel_runtime.testing.virtual_time import LoopClock, after

WINDOW_S = 15.0
BOUND_S = 120.0
"""How long, in virtual time, everything may take to come to its end once the faults are over."""
PREPARED_MAX_S = 75.0
"""How long a transaction may be prepared: 30 s, by a clock that may have been 30 s ahead, the
interval of resolvers, and time to answer."""
OFFSETS_S = 3.0
"""How long the group's offsets are behind the database."""
RESTORED_OF = 3
"""One seed of so many restores the database."""
TRACE_KEPT = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of one seed."""

    seed: int
    steps: int
    virtual_s: float
    transactions: int
    commits: int
    doubts: int
    """Commits of the database whose callers were not told."""
    faults: int
    refusals: int
    violations: tuple[str, ...]
    trace: tuple[str, ...]


def simulate(seed: int, tell: Callable[[str], None] | None = None) -> Report:
    """Run one seed; ``tell`` is given every event as a line."""
    with quiet(), simulated_disks(Random(seed)), simulated_loop() as loop:
        return loop.run_until_complete(Simulation(seed, loop, tell).run())


class Simulation:
    """One seed."""

    def __init__(self, seed: int, loop: SimulatedLoop, tell: Callable[[str], None] | None) -> None:
        self.seed = seed
        self._loop = loop
        self._tell = tell
        random = self._random = Random(seed)
        self._lines: list[str] = []
        self._failures: list[str] = []
        self._invariants = Invariants()
        self._network = Network(loop, Random(random.getrandbits(64)), self.trace)
        self._network.failures = self._failures
        self._network.observer = Answers(self._invariants)
        machinery = Machinery(
            loop=loop,
            network=self._network,
            random=Random(random.getrandbits(64)),
            invariants=self._invariants,
            trace=self.trace,
            failures=self._failures,
        )
        self._services = [Service(name, machinery) for name in NAMES]
        self._around = Surroundings(
            loop=loop,
            network=self._network,
            random=Random(random.getrandbits(64)),
            records=Records(Recorder(lambda: int(loop.time() * 1000)), count(1)),
            trace=self.trace,
            failures=self._failures,
        )
        self._machine = Machine(loop, Random(random.getrandbits(64)), self.trace)
        policy = random.choice((AfterRestore.REPROCESS, AfterRestore.SKIP))
        self._ledger = Ledger(self._machine, self._around, policy=policy)
        self._clients = [Client(name, work, self._around) for name, work in self._works()]
        targets = Targets(
            loop=loop,
            network=self._network,
            services=self._services,
            clients=self._clients,
            places=[(topic, at) for topic, n in TOPICS.items() for at in range(n)],
            know_moves=True,
            trace=self.trace,
        )
        self._faults = Faults(Random(random.getrandbits(64)), targets)
        self._prepared_since: dict[str, float] = {}
        self._relayed: tuple[str, int] | None = None
        """Owner and next version of the outbox before a restore."""

    def _works(self) -> list[tuple[str, Work]]:
        ledger = self._ledger
        return [
            ("feeder", Feeder(12, ledger)),
            *((f"{STORE}-{at}", Consuming(STORE, at, ledger)) for at in range(2)),
            *((f"{TRANSFORM}-{at}", Consuming(TRANSFORM, at, ledger)) for at in range(2)),
            *((f"{BLOCK}-{at}", Blocks(at, 8, ledger)) for at in range(2)),
            ("block-twin", Blocks(0, 8, ledger)),  # takes the id of block-0, and gives it back
            *((f"requests-{at}", Requests(at, 12, ledger)) for at in range(2)),
            *((f"relay-{at}", Relaying(ledger)) for at in range(2)),
        ]

    def trace(self, *event: object) -> None:
        """Note an event."""
        line = f"{self._loop.time():.6f} " + " ".join(map(str, event))
        self._lines.append(line)
        del self._lines[:-TRACE_KEPT]
        if self._tell is not None:
            self._tell(line)

    async def run(self) -> Report:
        """Run it to its end, or to the first violation."""
        watcher = FailedTasks(self._failures)
        logging.getLogger("aiosemel").addHandler(watcher)
        story = self._loop.create_task(self._story())
        violations: list[str] = []
        try:
            while not story.done() and not self._broken():
                await asyncio.wait([story], timeout=0.25)
            if story.done():
                error = story.exception()
                violations += (
                    story.result()
                    if error is None
                    else ["".join(traceback.format_exception(error))]
                )
            violations += self._broken()
        finally:
            logging.getLogger("aiosemel").removeHandler(watcher)
        return Report(
            seed=self.seed,
            steps=self._loop.steps,
            virtual_s=self._loop.time(),
            transactions=self._around.transactions,
            commits=self._machine.commits,
            doubts=self._machine.doubts,
            faults=self._faults.injected,
            refusals=sum(self._ledger.refusals.values()),
            violations=tuple(violations),
            trace=tuple(self._lines if violations else ()),
        )

    def _broken(self) -> list[str]:
        return [*self._invariants.violations, *self._failures]

    # -- the story -------------------------------------------------------------------------------

    async def _story(self) -> list[str]:
        for service in self._services:
            service.start()
        await self._until(lambda: all(service.ready for service in self._services))
        async with self._client("operator") as operator:
            for topic, partitions in TOPICS.items():
                await operator.admin().create_topic(topic, partitions=partitions)
            self._create_tables()
            for client in self._clients:
                client.start()
            backup = await self._trouble()
            wrong = await self._settle(operator)
            if wrong:
                return wrong
            went = Went(before=await self._found(operator))
            if self.seed % RESTORED_OF == RESTORED_OF - 1 and backup is not None:
                went = await self._restore(backup, went.before)
                wrong = await self._settle(operator)
                self._start_again(Requests)
                wrong = wrong or await self._settle(operator)
            return wrong + problems(await self._found(operator), went, self._ledger)

    def _create_tables(self) -> None:
        for statement in (*tables_sql(Dialect.SQLITE).split(";\n")[:-1], TABLE):
            self._machine.change(statement)

    async def _trouble(self) -> bytes | None:
        """Let faults come and go; returns a backup, unless nothing was done."""
        machine, random = self._machine, self._random
        machine.mood = FOUL
        self._faults.schedule(WINDOW_S)
        for _ in range(random.randint(1, 3)):
            at_s = random.uniform(0, WINDOW_S)
            self._loop.call_later(at_s, machine.restart, random.choice((0.05, 1.0, 4.0)))
        if random.random() < 0.5:
            gone = random.choice((f"{TRANSFORM}-1", f"{BLOCK}-1"))
            end = partial(self._end, gone)
            self._loop.call_later(random.uniform(1, WINDOW_S), machine.when_decided, gone, end)
        split_s = random.uniform(0.3, 0.9) * WINDOW_S
        await after(split_s * 1000)
        backup = machine.backup() if self._has_begun() else None
        await after((WINDOW_S - split_s) * 1000)
        self._faults.end()
        self._around.calm = True
        machine.mood = FAIR
        self.trace("calm")
        return backup

    def _has_begun(self) -> bool:
        """Whether each application has left its first trace in the database."""
        relayed = self._machine.look("SELECT next_version FROM semel_outbox_relay")
        return len(self._positions()) == 2 * TOPICS[IN] and relayed > [(1,)]

    def _end(self, name: str) -> None:
        """Let an instance never come back: it has prepared a transaction, and not committed it."""
        (client,) = (each for each in self._clients if each.name == name)
        self.trace("gone", name)
        work = client.work
        if isinstance(work, Consuming):
            work.done = True
        elif isinstance(work, Blocks):
            work.left = 0
        client.kill()

    async def _restore(self, backup: bytes, before: Found) -> Went:
        """Put the backup in the place of the database, and let the applications start again."""
        await after(OFFSETS_S * 1000)
        self._relayed = self._charge()
        self._machine.restore(backup)
        restored = self._in_database()
        for client in self._clients:
            client.kill()
        self._start_again((Feeder, Blocks))
        self._ledger.refusals.clear()
        return Went(before=before, restored=restored)

    def _charge(self) -> tuple[str, int]:
        ((owner, version),) = self._machine.look(
            "SELECT owner, next_version FROM semel_outbox_relay"
        )
        return str(owner), int(version)

    def _relay_knows(self) -> bool:
        """Whether a relay goes on after a restore, behind the lost versions or as a new owner."""
        if self._relayed is None:
            return True
        (owner_before, before), (owner, version) = self._relayed, self._charge()
        return owner != owner_before or version >= before

    def _start_again(self, kinds: type | tuple[type, ...]) -> None:
        """Let clients that have done their work do a little more."""
        for client in self._clients:
            work = client.work
            if isinstance(work, (Feeder, Blocks, Requests)) and isinstance(work, kinds):
                is_ended = work.done
                work.left = 3
                if is_ended:
                    client.start()

    # -- settling --------------------------------------------------------------------------------

    async def _settle(self, operator: SemelClient) -> list[str]:
        """Wait until nothing is left to do; nothing may be prepared for too long meanwhile."""
        until = self._loop.time() + BOUND_S
        left = "clients have not done their work"
        while self._loop.time() < until:
            try:
                late = await self._prepared_too_long(operator)
                if late:
                    return late
                left = await self._left(operator)
            except (RetriableError, DatabaseError):
                continue
            if not left:
                return []
            await after(500)
        return [f"not settled after {BOUND_S} s: {left}"]

    async def _prepared_too_long(self, operator: SemelClient) -> list[str]:
        prepared = await operator.admin().list_prepared_transactions(transactional_id_pattern=".*")
        now = self._loop.time()
        names = [str(each) for each in prepared]
        self._prepared_since = {name: self._prepared_since.get(name, now) for name in names}
        return [
            f"{name} is prepared for more than {PREPARED_MAX_S} s"
            for name, since in self._prepared_since.items()
            if now - since > PREPARED_MAX_S
        ]

    async def _left(self, operator: SemelClient) -> str:
        undone = [
            each.name
            for each in self._clients
            if isinstance(each.work, (Feeder, Blocks, Requests)) and not each.work.done
        ]
        if undone:
            return f"{undone} have not done their work"
        if not self._relay_knows():
            return "no relay goes on after the restore"
        if self._prepared_since:
            return f"{list(self._prepared_since)} are prepared"
        if rows := self._machine.look("SELECT count(*) FROM semel_outbox")[0][0]:
            return f"{rows} rows wait in the outbox"
        stable = await self._ends(operator, IsolationLevel.READ_COMMITTED)
        ends = await self._ends(operator, IsolationLevel.READ_UNCOMMITTED)
        if stable != ends:
            return f"transactions are open: {stable}, {ends}"
        reached = self._positions()
        inputs = await read_all(
            operator,
            IsolationLevel.READ_COMMITTED,
            {place: end for place, end in ends.items() if place.topic == IN},
        )
        for place, records in inputs.items():
            for group in (STORE, TRANSFORM):
                last = max((record.offset for record in records), default=-1)
                if reached.get((group, place.partition), 0) <= last:
                    return f"{group} has not consumed {place}: {reached}"
        return ""

    def _positions(self) -> dict[tuple[str, int], int]:
        rows = self._machine.look(
            "SELECT consumer_group, topic_partition, next_offset FROM semel_position"
        )
        return {(str(group), int(at)): int(offset) for group, at, offset in rows}

    async def _ends(
        self, operator: SemelClient, isolation: IsolationLevel
    ) -> dict[TopicPartition, int]:
        consumer = operator.consumer(options=ConsumerOptions(isolation_level=isolation))
        places = [TopicPartition(topic, at) for topic, n in TOPICS.items() for at in range(n)]
        try:
            return dict(await consumer.end_offsets(places))
        finally:
            await consumer.close()

    async def _found(self, operator: SemelClient) -> Found:
        """Read both sides."""
        ends = await self._ends(operator, IsolationLevel.READ_COMMITTED)
        read = await read_all(operator, IsolationLevel.READ_COMMITTED, ends)
        topics: dict[str, list[str]] = {topic: [] for topic in TOPICS}
        for place, records in read.items():
            for record in records:
                value = f"{place.partition}/{record.offset}" if place.topic == IN else record.value
                topics[place.topic].append(value)
        return replace(self._in_database(), topics=topics)

    def _in_database(self) -> Found:
        paid: dict[str, list[str]] = {STORE: [], TRANSFORM: [], OUTBOX: [], BLOCK: []}
        for application, name in self._machine.look("SELECT application, name FROM paid"):
            paid[str(application)].append(str(name))
        waiting = self._machine.look("SELECT CAST(record_value AS TEXT) FROM semel_outbox")
        return Found(paid=paid, waiting=[str(value) for (value,) in waiting])

    def _client(self, name: str) -> SemelClient:
        return SemelClient(
            BOOTSTRAP,
            options=CLIENT,
            connector=self._network.connector(name),
            clock=LoopClock(START_MS),
            random=Random(self._around.random.getrandbits(64)),
        )

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(BOUND_S):
            while not holds():
                await after(100)
