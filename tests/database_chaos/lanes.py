"""One application that is killed at one step after another, and compared after each kill.

A round: orders come in, the process dies at its step, another process goes on; one time in three
this one dies too, at any step. Then both sides must have each order once.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from aiosemel import Producer, SemelClient
from aiosemel.database import Database
from database_chaos.application import Arm, Start, Take
from database_chaos.books import Books, DifferenceError
from database_chaos.steps import Call, Step, steps_of
from database_chaos.victim import Victim

_CHUNK = 12
_REACHED_S = 60.0
_POLL_S = 0.05
_names = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What both sides have in the end: the sums of the orders' numbers."""

    orders: int = 0
    """How many there are."""
    given: int = 0
    in_database: int = 0
    in_topic: int = 0

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(
            orders=self.orders + other.orders,
            given=self.given + other.given,
            in_database=self.in_database + other.in_database,
            in_topic=self.in_topic + other.in_topic,
        )


@dataclass(slots=True)
class Tally:
    """What has happened at one step."""

    rounds: int = 0
    kills: int = 0
    """One for each round, and those of processes that went on."""
    agreed_s: float = 0.0
    """The longest time from a kill to equal sides."""

    def add(self, other: "Tally") -> None:
        """Take another one in."""
        self.rounds += other.rounds
        self.kills += other.kills
        self.agreed_s = max(self.agreed_s, other.agreed_s)


class Lane:
    """The rounds of one call on one database."""

    def __init__(
        self, start: Start, client: SemelClient, database: Database[object], random: Random
    ) -> None:
        """``start`` says call, database and cluster; each application gets a name of its own."""
        self._start = start
        self._client = client
        self._database = database
        self._random = random
        self._steps = steps_of(start.call)
        self.tallies = {str(step): Tally() for step in self._steps}
        self.sums = Sums()
        """Of all applications."""

    async def run(self, rounds: int) -> None:
        """Make so many rounds for each step. Raises DifferenceError, which names the step."""
        first = [step for step in self._steps if step.is_first]
        others = [step for step in self._steps if not step.is_first]
        for _ in range(rounds):
            for steps in (*([step] for step in first), others):
                async with self._application() as application:
                    for step in steps:
                        await self._round(application, step)

    async def _round(self, application: "_Application", step: Step) -> None:
        try:
            self.tallies[str(step)].add(await application.round(step))
        except DifferenceError as error:
            raise DifferenceError(f"{step}: {error}") from error

    @asynccontextmanager
    async def _application(self) -> AsyncIterator["_Application"]:
        start = replace(self._start, run=f"{self._start.call}-{next(_names)}")
        books = Books(start, self._client, self._database)
        async with books.opened(), self._client.producer() as producer:
            application = _Application(start, books, producer, self._random, self._steps)
            try:
                yield application
                await application.stop()
                paid, sent = await books.paid(), await books.received()
                self.sums += Sums(
                    orders=len(books.expected),
                    given=sum(books.expected),
                    in_database=sum(paid.elements()),
                    in_topic=sum(sent.elements()),
                )
            finally:
                application.end()


class _Application:
    """One application, from its first process to its last."""

    def __init__(
        self,
        start: Start,
        books: Books,
        producer: Producer,
        random: Random,
        steps: Sequence[Step],
    ) -> None:
        self._start = start
        self._books = books
        self._producer = producer
        self._random = random
        self._steps = steps
        self._victim: Victim | None = None
        self._numbers = count(1)
        self._kills = 0

    async def round(self, step: Step) -> Tally:
        """Kill the process at a step, and wait until both sides agree."""
        self._kills = 0
        if step.at_start:
            await self._stop()
            await self._give_orders()
            await self._begin(step.point)
        else:
            victim = self._victim or await self._begin()
            victim.tell(Arm(step.point, self._random.randint(1, 3)))
            await self._give_orders()
        await self._died(step)
        killed_at_s = time.monotonic()
        if self._random.random() < 1 / 3:  # Its successor dies too, where it may, or not at all.
            await self._begin(self._random.choice(self._steps).point)
        else:
            await self._begin()
        agreed_s = await self._books.agree(killed_at_s, self._go_on)
        assert self._victim is not None, "a process goes on"
        self._victim.tell(Arm("", 0))
        return Tally(1, self._kills, agreed_s)

    async def stop(self) -> None:
        """Let the last process end in order; both sides must still agree."""
        await self._stop()
        await self._books.agree(time.monotonic(), self._stay_away)

    def end(self) -> None:
        """Leave no process."""
        if self._victim is not None:
            self._victim.end()
            self._victim = None

    async def _stop(self) -> None:
        """Let the process end in order; one that dies at its step on the way has a successor."""
        while self._victim is not None:
            was_killed = not await self._victim.stop()
            self.end()
            if was_killed:
                self._kills += 1
                await self._begin()

    async def _give_orders(self) -> None:
        numbers = [next(self._numbers) for _ in range(_CHUNK)]
        self._books.expected.update(numbers)
        if self._start.call in (Call.STORE, Call.TRANSFORM):
            await (
                await self._producer.send_columns(
                    self._start.orders, [b"%d" % number for number in numbers]
                )
            )
        elif self._victim is not None:
            self._victim.tell(Take(numbers))

    async def _died(self, step: Step) -> None:
        """Wait until the process has died; more orders come in until it does."""
        victim = self._victim
        assert victim is not None, "it was begun"
        try:
            async with asyncio.timeout(_REACHED_S):
                while not victim.was_killed:
                    if await self._books.is_processed():
                        await self._give_orders()
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise DifferenceError(f"no process came to {step}") from None
        self._kills += 1
        self.end()

    async def _go_on(self) -> None:
        """Start a process again that has died, as any supervisor would."""
        if self._victim is not None and self._victim.was_killed:
            self._kills += 1
            self.end()
            await self._begin()

    async def _stay_away(self) -> None:
        """Start nothing."""

    async def _begin(self, point: str = "") -> Victim:
        assert self._victim is None, "there is one process at a time"
        self._victim = Victim(replace(self._start, point=point))
        if self._start.call in (Call.RELAY, Call.PRODUCER):
            self._victim.tell(Take(await self._books.missing()))
        return self._victim
