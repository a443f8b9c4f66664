"""The moments in the life of a transaction, for people and for programs."""

from collections.abc import Sequence
from typing import NamedTuple

from semel_cli.shared.output import Json, Table
from semel_console.insight.texts import duration_text, time_text


class Step(NamedTuple):
    """Something that has happened in a transaction."""

    name: str
    time_ms: int
    phase: str = ""
    """What lies between the step before and this one; empty: nothing that takes time."""


def in_order(steps: Sequence[Step]) -> list[Step]:
    """Return steps in the order of their times."""
    return sorted(steps, key=lambda step: step.time_ms)


def steps_table(steps: Sequence[Step]) -> Table:
    """Return steps, each with the time since the first, for people."""
    return Table(
        headings=("Time", "After", "Step"),
        rows=[
            (time_text(step.time_ms), duration_text(step.time_ms - steps[0].time_ms), step.name)
            for step in steps
        ],
        empty="No step has a known time.",
    )


def steps_document(steps: Sequence[Step]) -> Json:
    """Return the same, for programs."""
    return [{"name": step.name, "time_ms": step.time_ms} for step in steps]
