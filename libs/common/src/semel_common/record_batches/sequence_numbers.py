"""Sequence numbers: int32 from 0, in steps of the record count, 0 again after the highest. Pure."""

SEQUENCES = 1 << 31
"""How many there are: 0 to 2147483647."""


def next_sequence(sequence: int, record_count: int) -> int:
    """Return the sequence that follows ``record_count`` records."""
    return (sequence + record_count) % SEQUENCES
