"""Records whose keys and values are written already, as they are in ``Records``.

``batches`` makes payloads of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

KEYS_TAG = b"\x0a"
"""How each key begins, which its length and its bytes follow: see ``Records`` in records.proto."""
VALUES_TAG = b"\x1a"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedRecords:
    """Consecutive records of one batch, without headers."""

    record_count: int
    values: bytes
    """One after the other, each after the tag and its length; an absent one as if it were empty."""
    absent_values: Sequence[int]
    """Positions, ascending."""
    keys: bytes | None
    """None when no record has a key."""
    absent_keys: Sequence[int]
