"""Pieces of a state: none is too large for a message or a commit, and none is left out."""

from semel_runtime.moving.transfer_pieces import RECORDS_MAX, SIZE_BYTES_MAX, piece_of


def pieces(known: list[bytes]) -> list[list[bytes]]:
    """Ask for all of a state."""
    found: list[list[bytes]] = []
    while (first := sum(map(len, found))) < len(known):
        found.append(piece_of(known, first, bytes))
    return found


def test_all_pieces_together_are_the_state() -> None:
    known = [bytes([each % 251]) * (each % 3_000) for each in range(5_000)]
    assert [record for piece in pieces(known) for record in piece] == known
    assert max(map(len, pieces(known))) <= RECORDS_MAX


def test_large_records_make_small_pieces() -> None:
    known = [bytes(SIZE_BYTES_MAX // 4)] * 10
    assert [len(piece) for piece in pieces(known)] == [4, 4, 2]


def test_a_record_of_any_size_has_its_piece() -> None:
    known = [b"small", bytes(3 * SIZE_BYTES_MAX), b"small"]
    assert [len(piece) for piece in pieces(known)] == [2, 1]
