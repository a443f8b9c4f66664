"""Headers of a record, as plain values. Pure."""

from typing import TypeAlias

HeaderPairs: TypeAlias = tuple[tuple[str, bytes | None], ...]
"""Names and values, in order; a name may come twice, and a value may be absent."""
