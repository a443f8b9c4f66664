"""The plan of kills, made from a seed, and its execution.

Moments are counted in lines of income, so that they fall into the job however fast the machine is.
Between two lines of income there are many steps of a protocol: where exactly a kill hits is chance.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

AFTER_KILLS = 0.06
"""The part of the job that is left for the time after the last kill."""
_DELAY_MAX_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One kill: of whom, and when."""

    victim: str
    after_lines: int
    """There is so much income before it."""
    orders_by_then: int
    """So many orders must have come in before it; otherwise no process would be at work."""


def plan_kills(
    victims: Sequence[str], lines: int, random: Random, *, rounds: int, loaded_first: float
) -> tuple[Kill, ...]:
    """Return a plan in which each victim is killed ``rounds`` times, spread over a job at random.

    ``loaded_first`` is the part of the orders that is there from the beginning.
    """
    chosen = [victim for victim in victims for _ in range(rounds)]
    random.shuffle(chosen)
    span = (1 - AFTER_KILLS) / len(chosen)
    feed = (1 - AFTER_KILLS - loaded_first) / len(chosen)
    return tuple(
        Kill(
            victim=victim,
            after_lines=int(lines * span * (number + random.uniform(0.1, 0.9))),
            orders_by_then=int(lines * (loaded_first + feed * (number + 1))),
        )
        for number, victim in enumerate(chosen)
    )


class Stage(Protocol):
    """Where processes live."""

    async def wait_ready(self, name: str) -> None:
        """Wait until a process does its work."""
        ...

    async def kill(self, name: str) -> None:
        """Kill a process as ``kill -9`` does."""
        ...

    async def start(self, name: str) -> None:
        """Start it again; returns before it is ready."""
        ...


class Course(Protocol):
    """The course of the job."""

    async def load_up_to(self, lines: int) -> None:
        """Let orders come in, until there are so many."""
        ...

    async def reached(self, lines: int) -> None:
        """Wait until there are so many lines of income."""
        ...


async def carry_out(plan: Sequence[Kill], stage: Stage, course: Course, random: Random) -> None:
    """Kill, and start again, one after the other; returns when all has happened."""
    for kill in plan:
        await stage.wait_ready(kill.victim)
        async with asyncio.TaskGroup() as group:
            # Orders come in while it happens, so that the kill finds everybody at work.
            group.create_task(course.load_up_to(kill.orders_by_then), name="orders come in")
            await course.reached(kill.after_lines)
            await asyncio.sleep(random.uniform(0, _DELAY_MAX_S))
            await stage.kill(kill.victim)
            await stage.start(kill.victim)
