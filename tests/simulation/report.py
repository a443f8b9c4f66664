"""What one seed came to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one seed came to."""

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
