"""The result of one seed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of one seed."""

    seed: int
    steps: int
    virtual_s: float
    transactions: int
    faults: int
    moves: int
    """Of partitions, that came to their ends."""
    messages: int
    checks: int
    digest: str
    """Of all events and the whole history, if it was asked for."""
    violations: tuple[str, ...]
    trace: tuple[str, ...]
