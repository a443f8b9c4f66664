"""One seed: a cluster starts, clients work, faults come and go, all must come to its end."""

import asyncio
import hashlib
import logging
import traceback
from collections.abc import Callable
from itertools import count
from random import Random

from semel_checker.check import check
from semel_checker.history import Recorder
from semel_checker.names import Partition, TransactionState, Writer
from semel_checker.observations import (
    FaultsOver,
    FinalGroup,
    FinalPartition,
    FinalTransaction,
    RunStarted,
    StoredRecord,
    TopicMade,
)
from semel_checker.operations import GroupOffset
from semel_checker.storage import to_lines

from aiosemel import (
    Consumer,
    ConsumerOptions,
    IsolationLevel,
    RetriableError,
    SemelClient,
    TopicPartition,
)
from semel_common.record_batches import sequence_numbers
from semel_runtime.testing.virtual_time import LoopClock, after
from simulation.answers import Answers
from simulation.appends import COUNTED, Appender, uncounted
from simulation.by_hand import ByHand
from simulation.compaction import TABLE
from simulation.deletion import CUT_TOPIC, Cutter, keep_all
from simulation.dialect import Dialect
from simulation.disk import simulated_disks
from simulation.faults import Faults, Targets
from simulation.invariants import InvariantError, Invariants
from simulation.joint import JointOwner, JointWorker, SharedBoard
from simulation.logs import FailedTasks, quiet
from simulation.network import Network
from simulation.processes import BOOTSTRAP, NAMES, START_MS, Machinery, Service
from simulation.recorded import Records
from simulation.report import Report
from simulation.short_lives import PROCESSES, Holders, ShortLives
from simulation.transformer import Transformer
from simulation.two_phase import Register, TwoPhase
from simulation.workloads import (
    CLIENT,
    CONFIGS,
    GROUP,
    TOPICS,
    TRANSACTION_TIMEOUT_MS,
    Client,
    Plain,
    Reader,
    Surroundings,
    Transactions,
    Work,
    read_all,
)
from simulation.world import SimulatedLoop, simulated_loop

PLACES = [TopicPartition(topic, at) for topic, n in TOPICS.items() for at in range(n)]
TRACE_KEPT = 60
WINDOW_S = 12.0
BOUND_S = 120.0
"""How long, in virtual time, everything may take to come to its end once the faults are over."""
TRANSACTIONS_MIN = 100
SEQUENCES = 32
"""How many there are, so that they begin again now and then: more than five batches take."""


def simulate(
    seed: int,
    tell: Callable[[str], None] | None = None,
    *,
    digest: bool = False,
    dialect: Dialect | None = None,
) -> Report:
    """Run one seed; ``tell`` is given every event as a line.

    With a ``dialect``, some processes are of an older release, as far as messages go.
    """
    with quiet(), simulated_disks(Random(seed)), simulated_loop() as loop:
        all_sequences, sequence_numbers.SEQUENCES = sequence_numbers.SEQUENCES, SEQUENCES
        try:
            simulation = Simulation(seed, loop, tell, digest=digest, dialect=dialect).run()
            return loop.run_until_complete(simulation)
        finally:
            sequence_numbers.SEQUENCES = all_sequences


class Simulation:
    """One seed."""

    def __init__(
        self,
        seed: int,
        loop: SimulatedLoop,
        tell: Callable[[str], None] | None,
        *,
        digest: bool,
        dialect: Dialect | None,
    ) -> None:
        self.seed = seed
        self._loop = loop
        self._tell = tell
        random = Random(seed)
        self._wants_digest = digest
        self._events: list[tuple[object, ...]] = []
        self._errors: list[str] = []
        self._failures: list[str] = []
        self._recorder = Recorder(lambda: int(loop.time() * 1000))
        self._invariants = Invariants()
        self._network = Network(loop, Random(random.getrandbits(64)), self.trace)
        self._network.failures = self._failures
        self._network.dialect = dialect
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
            records=Records(self._recorder, count(1)),
            trace=self.trace,
            failures=self._failures,
        )
        self._register = Register()
        self._cutter = Cutter(10, self._around.records)
        self._clients = self._make_clients()
        targets = Targets(
            loop=loop,
            network=self._network,
            services=self._services,
            clients=self._clients,
            places=[*PLACES, COUNTED],
            know_moves=dialect is None,
            trace=self.trace,
        )
        self._faults = Faults(Random(random.getrandbits(64)), targets)

    def trace(self, *event: object) -> None:
        """Note an event."""
        entry = (round(self._loop.time() * 1e6), *event)
        self._events.append(entry)
        if self._tell is not None:
            self._tell(_line(entry))

    async def run(self) -> Report:
        """Run it to its end, or to the first violation."""
        watcher = FailedTasks(self._failures)
        logging.getLogger("aiosemel").addHandler(watcher)
        main = asyncio.current_task()
        assert main is not None
        story = self._loop.create_task(self._story())
        violations: list[str] = []
        try:
            while not story.done() and not self._broken():
                await asyncio.wait([story], timeout=0.25)
            if story.done():
                violations += _result(story)
            violations += self._broken()
        finally:
            logging.getLogger("aiosemel").removeHandler(watcher)
        return Report(
            seed=self.seed,
            steps=self._loop.steps,
            virtual_s=self._loop.time(),
            transactions=self._around.transactions,
            faults=self._faults.injected,
            moves=_completed(self._invariants),
            messages=sum(event[1] == "request" for event in self._events),
            checks=self._invariants.checked,
            digest=self._digest() if self._wants_digest else "",
            violations=tuple(violations),
            trace=tuple(_line(event) for event in self._events[-TRACE_KEPT:] if violations),
        )

    def _digest(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for line in (*map(_line, self._events), *to_lines(self._recorder.events)):
            digest.update(line.encode() + b"\n")
        return digest.hexdigest()

    def _broken(self) -> list[str]:
        return [*self._invariants.violations, *self._failures]

    # -- the story -------------------------------------------------------------------------------

    async def _story(self) -> list[str]:
        for service in self._services:
            service.start()
        await self._until(lambda: all(service.ready for service in self._services))
        async with self._client("operator") as operator:
            self._record_start()
            for topic, partitions in (*TOPICS.items(), (COUNTED.topic, 1)):
                await operator.admin().create_topic(
                    topic, partitions=partitions, configs=CONFIGS.get(topic, {})
                )
            for client in self._clients:
                client.start()
            self._faults.schedule(WINDOW_S)
            await after(WINDOW_S * 1000)
            self._faults.end()
            self._around.calm = True
            self.trace("calm")
            self._recorder.observed("operator", FaultsOver())
            if not await self._until(self._work_is_done, BOUND_S):
                return [f"clients have not done their work: {self._undone()}"]
            problems = await self._settle(operator)
            if problems:
                return problems
            self._invariants.compare_all()
            return await self._judge(operator)

    def _record_start(self) -> None:
        started = RunStarted(
            name=f"seed {self.seed}",
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            slack_ms=10_000,
        )
        self._recorder.observed("operator", started)
        for topic, partitions in TOPICS.items():
            made = TopicMade(
                topic=topic,
                partitions=partitions,
                compacted=topic == TABLE,
                retention=topic == CUT_TOPIC,
            )
            self._recorder.observed("operator", made)

    async def _settle(self, operator: SemelClient) -> list[str]:
        """Wait until every transaction is decided and every input is consumed."""
        consumer = operator.consumer(GROUP, ConsumerOptions())
        loose = operator.consumer(
            options=ConsumerOptions(isolation_level=IsolationLevel.READ_UNCOMMITTED)
        )
        inputs = [TopicPartition("in", at) for at in range(TOPICS["in"])]
        left: dict[object, object] = {}
        until = self._loop.time() + BOUND_S
        while self._loop.time() < until:
            try:
                stable = await consumer.end_offsets([*PLACES, COUNTED])
                ends = await loose.end_offsets([*PLACES, COUNTED])
                committed = await consumer.committed(inputs)
            except RetriableError:
                continue
            left = {
                place: (stable[place], end) for place, end in ends.items() if stable[place] != end
            }
            left |= await operator.admin().moves.list_partition_reassignments()
            for place in inputs:
                found = committed.get(place)
                at = 0 if found is None else found.offset
                if at < stable[place] and not await self._only_markers(operator, place, at):
                    left[place] = (at, stable[place])
            if not left:
                return []
            await after(200)
        return [f"not settled after {BOUND_S} s: {left}"]

    async def _only_markers(self, operator: SemelClient, place: tuple[str, int], at: int) -> bool:
        """Whether no record is left to consume in a partition."""
        consumer = operator.consumer(options=ConsumerOptions(fetch_max_wait_ms=20))
        consumer.assign([place])
        consumer.seek(place, at)
        found = await consumer.poll(1, 50)
        await consumer.close()
        return not found

    async def _judge(self, operator: SemelClient) -> list[str]:
        problems = []
        transactions = self._around.transactions
        if transactions < TRANSACTIONS_MIN:
            problems.append(f"only {transactions} transactions: not a real seed")
        for client in self._clients:
            if isinstance(client.work, (Transformer, Reader)):
                client.work.done = True
                client.kill()
        consumer = operator.consumer(GROUP)
        starts = await keep_all(operator)
        problems += self._cutter.problems(starts)
        ends = await consumer.end_offsets([*PLACES, COUNTED])
        committed = await read_all(operator, IsolationLevel.READ_COMMITTED, ends)
        everything = await read_all(operator, IsolationLevel.READ_UNCOMMITTED, ends)
        for place in PLACES:
            self._recorder.observed(
                "operator",
                FinalPartition(
                    partition=Partition(*place),
                    log_start_offset=starts.get(place, 0),
                    last_stable_offset=ends[place],
                    high_watermark=ends[place],
                    committed=committed[place],
                    uncommitted=tuple(StoredRecord(*each) for each in everything[place]),
                ),
            )
        self._recorder.observed("operator", await self._final_group(consumer))
        for writer, commit in sorted(self._invariants.decided.items()):
            state = TransactionState.COMMITTED if commit else TransactionState.ABORTED
            final = FinalTransaction(writer=Writer(*writer), state=state)
            self._recorder.observed("operator", final)
        problems += self._register.disagreements(self._invariants.decided)
        problems += uncounted(committed[COUNTED])
        return problems + [str(each) for each in check(self._recorder.events)]

    async def _final_group(self, consumer: Consumer) -> FinalGroup:
        inputs = [("in", at) for at in range(TOPICS["in"])]
        found = await consumer.committed(inputs)
        offsets = ((each, found.get(TopicPartition(*each))) for each in inputs)
        return FinalGroup(
            group=GROUP,
            offsets=tuple(
                GroupOffset(Partition(*each), None if at is None else at.offset)
                for each, at in offsets
            ),
        )

    def _make_clients(self) -> list[Client]:
        around = self._around
        holders = Holders(self._loop, around, self._failures)
        works: list[tuple[str, Work]] = [
            ("writer-0", Transactions("writer-0", 16, ("a", "b", TABLE), around)),
            ("writer-1", Transactions("writer-1", 16, ("a", "in", "cut"), around)),
            ("writer-2", Transactions("writer-2", 16, ("a", "b", "in"), around)),
            ("writer-3", Transactions("writer-3", 16, (TABLE, "cut"), around)),
            ("duellist-0", Transactions("duel", 18, (TABLE, "b"), around)),
            ("duellist-1", Transactions("duel", 18, ("a", TABLE), around)),
            ("preparer-0", TwoPhase("prepared", 8, self._register, around)),
            ("preparer-1", TwoPhase("prepared", 8, self._register, around)),
            ("appender-0", Appender("appender-0", 6, around)),
            ("appender-1", Appender("appender-1", 6, around)),
            ("plain", Plain(20, (("a", 0), ("a", 0), ("in", 0), ("cut", 0), (TABLE, 0)), around)),
            ("by-hand", ByHand(10, around)),
            ("cutter", self._cutter),
            ("transformer-0", Transformer("transformer-0", around)),
            *self._joint_clients(),
            ("transformer-1", Transformer("transformer-1", around, instance_id="one")),
            ("transformer-2", Transformer("transformer-2", around, sessions=True)),
            (
                "transformer-3",
                Transformer("transformer-3", around, instance_id="three", sessions=True),
            ),
            *(
                (f"short-lived-{number}", ShortLives(holders, around))
                for number in range(PROCESSES)
            ),
            ("committed", Reader(("a", "b", "cut", TABLE), IsolationLevel.READ_COMMITTED)),
            ("uncommitted", Reader(("a", "b", "cut", TABLE), IsolationLevel.READ_UNCOMMITTED)),
        ]
        return [Client(name, work, around) for name, work in works]

    def _joint_clients(self) -> list[tuple[str, Work]]:
        board = SharedBoard("joint", versions=8)
        owners = [JointOwner(board, self._around) for _ in range(2)]
        workers = [JointWorker(board, ("a", "b"), self._around) for _ in range(3)]
        return [
            *((f"owner-{number}", owner) for number, owner in enumerate(owners)),
            *((f"worker-{number}", worker) for number, worker in enumerate(workers)),
        ]

    def _client(self, name: str) -> SemelClient:
        return SemelClient(
            BOOTSTRAP,
            options=CLIENT,
            connector=self._network.connector(name),
            clock=LoopClock(START_MS),
            random=Random(self._around.random.getrandbits(64)),
        )

    # -- waiting ---------------------------------------------------------------------------------

    def _undone(self) -> list[str]:
        endless = (Transformer, Reader)
        return [
            client.name
            for client in self._clients
            if not isinstance(client.work, endless)
            and (not client.work.done or (client.life is not None and client.life.alive))
        ]

    def _work_is_done(self) -> bool:
        return not self._undone()

    async def _until(self, holds: Callable[[], bool], seconds: float = BOUND_S) -> bool:
        until = self._loop.time() + seconds
        while not holds():
            if self._loop.time() >= until:
                return False
            await after(100)
        return True


def _completed(watch: Invariants) -> int:
    """Count the partitions that have moved, all the way."""
    return sum(each.completed for each in (watch.moves, watch.group_moves, watch.log_moves))


def _result(story: "asyncio.Task[list[str]]") -> list[str]:
    error = story.exception()
    if error is None:
        return story.result()
    if isinstance(error, InvariantError):
        return []
    return ["".join(traceback.format_exception(error))]


def _line(event: tuple[object, ...]) -> str:
    return " ".join(str(each) for each in event)
