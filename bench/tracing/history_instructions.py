"""What the history of transactions costs in machine instructions: kept, and not kept.

Counted as ``tracing-instructions`` counts: client and services under Valgrind, 64 producers. A turn
with the history comes before and after the turn without it: their difference is the noise.
"""

from collections.abc import Mapping

from bench.measure import Figure
from bench.tracing.instructions import UNIT, count_turn

_KINDS: Mapping[str, Mapping[str, str | int]] = {
    "kept": {},
    "not kept": {"transaction_history_entries_max": 0},
    "kept, again": {},
}


async def history_instructions() -> list[Figure]:
    """Count each once. Raises SystemExit where there is no Valgrind."""
    counts = {name: (await count_turn({}, settings)).thousands for name, settings in _KINDS.items()}
    without = counts["not kept"]
    return [
        *(Figure(name=name, value=count, unit=UNIT) for name, count in counts.items()),
        *(
            Figure(name=f"{name}: more", value=100 * (count / without - 1), unit="%", goal="≤ 2")
            for name, count in counts.items()
            if name != "not kept"
        ),
    ]
