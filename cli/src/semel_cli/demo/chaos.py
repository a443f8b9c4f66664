"""Who is killed when: a plan from a seed, and who carries it out.

Moments are counted in lines of income, so that they fall into the job however fast the machine is.
Between two lines of income there are many steps of a protocol: where exactly a kill hits is chance.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

ROUNDS = 2
"""How often each process is killed."""
_FIRST, _LAST = 0.03, 0.85
"""The part of the job in which kills fall."""
_DELAY_MAX_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One kill: of whom, and how much income there is before it."""

    victim: str
    after_lines: int


def plan_kills(victims: Sequence[str], lines: int, random: Random) -> tuple[Kill, ...]:
    """Return a plan in which each victim is killed ROUNDS times, at random moments of a job."""
    chosen = [victim for victim in victims for _ in range(ROUNDS)]
    random.shuffle(chosen)
    moments = sorted(int(lines * random.uniform(_FIRST, _LAST)) for _ in chosen)
    return tuple(
        Kill(victim=victim, after_lines=moment)
        for victim, moment in zip(chosen, moments, strict=True)
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


class Progress(Protocol):
    """How far the job is."""

    async def reached(self, lines: int) -> None:
        """Wait until there are so many lines of income."""
        ...


async def carry_out(plan: Sequence[Kill], stage: Stage, progress: Progress, random: Random) -> None:
    """Kill, and start again, one after the other; returns when all has happened."""
    for kill in plan:
        await progress.reached(kill.after_lines)
        await stage.wait_ready(kill.victim)
        await asyncio.sleep(random.uniform(0, _DELAY_MAX_S))
        await stage.kill(kill.victim)
        await stage.start(kill.victim)
