"""Frames of the log: they come back as they were, and nothing else is taken for one."""

from collections.abc import Sequence
from random import Random

import pytest
from journal_harness import batch
from msgspec import structs

from semel_runtime.journal.log.frames import ALIGNMENT, LoggedAppend, encode, frames_of

MARK = 0x1234_5678_9ABC_DEF0


def append(at: int, *, batches: int = 2, data: bytes = b"chunk") -> LoggedAppend:
    return LoggedAppend(
        base_offset=at,
        record_count=3,
        crc32c=77,
        data=data,
        batches=[
            structs.replace(batch(n - 1, at, timestamp_ms=-n, payload=b"p" * n), header=b"h" * n)
            for n in range(batches)
        ],
    )


def framed(*appends: LoggedAppend, mark: int = MARK) -> bytes:
    return b"".join(encode(each, mark=mark, claim_epoch=5) for each in appends)


def found(data: bytes, *, start: int = 0) -> Sequence[LoggedAppend]:
    return list(frames_of(data, mark=MARK, start=start))


@pytest.mark.parametrize("batches", [0, 1, 40])
@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 9])
def test_appends_come_back_as_they_were(batches: int, data: bytes) -> None:
    appends = [append(at, batches=batches, data=data) for at in (0, 3, 6)]

    assert found(framed(*appends) + bytes(1_000)) == appends
    assert len(framed(appends[0])) == appends[0].size_bytes
    assert appends[0].size_bytes % ALIGNMENT == 0
    assert appends[0].next_offset == 3


def test_what_ends_at_or_before_an_offset_is_left_out() -> None:
    appends = [append(at) for at in (0, 3, 6)]

    assert found(framed(*appends), start=3) == appends[1:]
    assert found(framed(*appends), start=4) == appends[1:]
    assert found(framed(*appends), start=9) == []


def test_frames_of_another_log_are_left_out() -> None:
    assert found(framed(append(0), mark=MARK + 1) + framed(append(3))) == [append(3)]


def test_a_frame_in_a_payload_is_none_of_the_log() -> None:
    inner = framed(append(90))
    outer = LoggedAppend(base_offset=0, record_count=1, crc32c=0, data=inner, batches=[])

    assert found(framed(outer, append(1))) == [outer, append(1)]


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_frame_that_is_cut_off_is_none(cut: int) -> None:
    whole = framed(append(0), append(3, batches=0))

    assert found(whole[:-cut]) == [append(0)]
    assert found(whole[:-cut] + bytes(cut)) in ([append(0)], [append(0), append(3, batches=0)])


def test_no_bit_can_flip_in_a_frame() -> None:
    """Those of the padding do not count as data, but the sum covers them too."""
    whole = framed(append(0), append(3), append(6))
    size = append(0).size_bytes
    for bit in range(size * 8, 2 * size * 8):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        assert found(bytes(data)) == [append(0), append(6)], bit


def test_frames_behind_damage_and_older_ones_are_found() -> None:
    random = Random(1)
    noise = random.randbytes(4_096 + 3)
    data = framed(append(9)) + noise + bytes(-len(noise) % ALIGNMENT) + framed(append(0))

    assert found(data) == [append(9), append(0)]
    assert found(data, start=9) == [append(9)]


def test_bytes_that_only_begin_like_a_frame_are_none() -> None:
    beginning = framed(append(0))[:16]

    assert found(beginning) == []
    assert found(beginning + bytes(200)) == []
    assert found(b"x" + framed(append(0))) == []
    huge = b"SEMELLOG" + (1 << 31).to_bytes(4) + bytes(100)
    assert found(huge + bytes(-len(huge) % ALIGNMENT) + framed(append(0))) == [append(0)]
