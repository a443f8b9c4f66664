"""Runs cells: warms up, lets the contestants take turns, and watches what their processes use."""

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from statistics import median
from typing import Self

from bench.clients.messages import Order
from bench.clients.settings import settings_of
from bench.kafka.cells import FILL, SOURCE_RECORDS, WARM_UP, Cell, Contestant
from bench.kafka.driver import ClientFailedError, Driver
from bench.kafka.figures import distribution, figure_of
from bench.kafka.report import CellReport, LineReport, Usage
from bench.kafka.systems import Running
from bench.kafka.table import CLIENT, number
from bench.processes import forget_peak, peak_mib, processor_s
from bench.workloads import Began, Kind, Sample, Task

UNBOUNDED = 1 << 53
"""As many records as there is time for; a number that JSON and Java can hold."""
SOURCE = "bench-source"
_FILLING = (Contestant.SEMEL, Contestant.JAVA, Contestant.JAVA_FLUSH)
"""The writers of the input, one for each system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long things take."""

    runs: int = 3
    start_s: float = 8.0
    """How long each contestant works before the first cell."""
    warm_up_s: float = 0.5
    """Of each run; a run that is not counted comes before all others of a cell."""
    duration_s: float = 3.0
    source_records: int = SOURCE_RECORDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one contestant has done in one run."""

    sample: Sample
    processor_ms: Mapping[str, float]
    """For one transaction, by process."""


class Harness:
    """Has a driver for each contestant. Use it in ``async with``."""

    def __init__(
        self, systems: Mapping[Contestant, Running], commands: Mapping[Contestant, Sequence[str]]
    ) -> None:
        """Start nothing yet; a system without a command does not take part."""
        self._systems = systems
        self._drivers = {each: Driver(each, command) for each, command in commands.items()}
        self._stack = AsyncExitStack()
        self._out: set[Contestant] = set()
        """The contestants that cannot take part any more."""
        self.failures: list[str] = []

    async def __aenter__(self) -> Self:
        for driver in self._drivers.values():
            await self._stack.enter_async_context(driver)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def warm_up(self, duration_s: float) -> None:
        """Let each contestant run transactions for a while: a Java that is cold is slow."""
        for contestant in self._drivers:
            print(f"{contestant}: warming up for {duration_s:g} s", file=sys.stderr, flush=True)
            task = Task(
                workload=WARM_UP,
                name=f"bench-warm-up-{contestant}",
                records_max=UNBOUNDED,
                warm_up_s=0,
                duration_s=duration_s,
            )
            await self._run(contestant, task)

    async def fill(self, records: int) -> None:
        """Write the input, once for each system; a failing system takes no further part."""
        for contestant in [each for each in _FILLING if each in self._drivers]:
            print(f"{contestant}: writing {records:,} records", file=sys.stderr, flush=True)
            task = Task(
                workload=FILL, name=SOURCE, records_max=records, warm_up_s=0, duration_s=1e9
            )
            if not await self._run(contestant, task):
                self._out |= {each for each in Contestant if each.system is contestant.system}

    async def measure(self, cell: Cell, pace: Pace) -> CellReport:
        """Run a cell."""
        taking_part = self._drivers.keys() - self._out
        present = [each for each in cell.contestants if each in taking_part]
        for contestant in present:
            for pid in self._pids(contestant).values():
                forget_peak(pid)
        turns: dict[Contestant, list[Turn]] = defaultdict(list)
        short = replace(pace, duration_s=min(1.0, pace.duration_s))
        for run in range(pace.runs + 1):
            for contestant in _rotated(present, run):
                turn = await self._turn(cell, contestant, run, pace if run else short)
                if run and turn is not None:
                    turns[contestant].append(turn)
        return self._report(cell, turns)

    async def _turn(self, cell: Cell, contestant: Contestant, run: int, pace: Pace) -> Turn | None:
        """Do one run; None if it failed."""
        before: dict[str, float] = {}

        def began() -> None:
            before.update(self._processor_s(contestant))

        sample = await self._run(contestant, _task(cell, contestant, run, pace), began)
        if sample is None:
            return None
        used_s = self._processor_s(contestant)
        _say(cell, contestant, run, sample)
        return Turn(
            sample=sample,
            processor_ms={
                name: (used_s[name] - started_s) * 1_000 / sample.transactions
                for name, started_s in before.items()
            },
        )

    async def _run(
        self, contestant: Contestant, task: Task, began: Began = lambda: None
    ) -> Sample | None:
        """Have a task done; None if it failed, which is noted."""
        order = Order(task=task, settings=settings_of(contestant.client, task.workload))
        try:
            return await self._drivers[contestant].run(order, began)
        except ClientFailedError as error:
            print(error, file=sys.stderr, flush=True)
            self.failures.append(str(error))
            return None

    def _report(self, cell: Cell, turns: Mapping[Contestant, Sequence[Turn]]) -> CellReport:
        samples = {each: [turn.sample for turn in taken] for each, taken in turns.items()}
        lines = [
            LineReport(
                unit=goal.unit,
                values={
                    each: [figure_of(sample, goal.unit, cell.workload) for sample in taken]
                    for each, taken in samples.items()
                },
            )
            for goal in cell.lines
        ]
        return CellReport(
            name=cell.name,
            lines=lines,
            usage={each: self._usage(each, taken) for each, taken in turns.items()},
            records_per_transaction={
                each: sum(sample.records for sample in taken)
                / sum(sample.transactions for sample in taken)
                for each, taken in samples.items()
            },
            distributions={each: distribution(taken) for each, taken in samples.items()},
        )

    def _usage(self, contestant: Contestant, turns: Sequence[Turn]) -> Usage:
        names = turns[0].processor_ms
        return Usage(
            processor_ms={
                name: median(turn.processor_ms[name] for turn in turns) for name in names
            },
            peak_mib={name: peak_mib(pid) for name, pid in self._pids(contestant).items()},
        )

    def _processor_s(self, contestant: Contestant) -> Mapping[str, float]:
        return {name: processor_s(pid) for name, pid in self._pids(contestant).items()}

    def _pids(self, contestant: Contestant) -> Mapping[str, int]:
        client = {CLIENT: self._drivers[contestant].pid}
        return client | dict(self._systems[contestant].pids)


def _task(cell: Cell, contestant: Contestant, run: int, pace: Pace) -> Task:
    return Task(
        workload=cell.workload,
        name=f"bench-{cell.name}-{contestant}-{run}",
        source=SOURCE if cell.reads else "",
        records_max=pace.source_records if cell.reads else UNBOUNDED,
        # A consumer that is fast has read everything before it would be warm.
        warm_up_s=0 if cell.workload.kind is Kind.CONSUME else pace.warm_up_s,
        duration_s=pace.duration_s,
    )


def _rotated(contestants: Sequence[Contestant], run: int) -> Sequence[Contestant]:
    """Let another one be the first each time, so that none always follows the same."""
    first = run % len(contestants) if contestants else 0
    return [*contestants[first:], *contestants[:first]]


def _say(cell: Cell, contestant: Contestant, run: int, sample: Sample) -> None:
    when = f"run {run}" if run else "warm-up"
    found = ", ".join(
        f"{number(figure_of(sample, goal.unit, cell.workload))} {goal.unit}" for goal in cell.lines
    )
    print(f"{cell.name}, {when}: {contestant}: {found}", file=sys.stderr, flush=True)
