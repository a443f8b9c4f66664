"""A state that is handed over piece by piece: how large a piece is, and which go together."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from semel_common.errors import CorruptMessageError

R = TypeVar("R")

RECORDS_MAX = 2_000
SIZE_BYTES_MAX = 1 << 20
"""Size of one piece without its last record: the new leader writes a piece in one commit."""


class Piece(Protocol):
    """An answer with some records of a state."""

    @property
    def records(self) -> Sequence[bytes]:
        """Each as it stands in a journal."""
        ...

    @property
    def record_count(self) -> int:
        """How many the whole state has."""
        ...

    @property
    def claim_epoch(self) -> int:
        """Of the journal from which they come."""
        ...


def piece_of(known: Sequence[R], first: int, encode: Callable[[R], bytes]) -> list[bytes]:
    """Return records from the first on, as many as one answer may have; one, however large."""
    piece: list[bytes] = []
    size_bytes = 0
    for record in known[first : first + RECORDS_MAX]:
        piece.append(encode(record))
        size_bytes += len(piece[-1])
        if size_bytes >= SIZE_BYTES_MAX:
            break
    return piece


def check_goes_on(first: Piece, piece: Piece) -> None:
    """Refuse a piece from another start of the old leader, and one that leads nowhere.

    Raises CorruptMessageError.
    """
    if piece.claim_epoch != first.claim_epoch or not piece.records:
        raise CorruptMessageError(
            f"a piece of {len(piece.records)} records comes from claim epoch {piece.claim_epoch},"
            f" the first one from {first.claim_epoch}"
        )
