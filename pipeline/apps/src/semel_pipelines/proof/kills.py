"""The plan of kills, made from a seed. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

FIRST = 0.1
LAST = 0.85
"""Between these parts of the orders everything is killed: what follows shows that all is well."""
_DELAY_MAX_S = 1.0
"""A micro-batch takes about so long: where in it a kill hits is chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One kill: of whom, and when."""

    victim: str
    after_lines: int
    """So many order lines have come in before it."""
    delay_s: float


def plan(victims: Sequence[str], lines: int, random: Random) -> tuple[Kill, ...]:
    """Return a plan in which each victim is killed once, spread over the orders."""
    chosen = random.sample(victims, len(victims))
    step = (LAST - FIRST) / len(chosen)
    return tuple(
        Kill(
            victim=victim,
            after_lines=int(lines * (FIRST + step * (number + random.random()))),
            delay_s=random.uniform(0, _DELAY_MAX_S),
        )
        for number, victim in enumerate(chosen)
    )
