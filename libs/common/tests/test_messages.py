"""Messages come out of a stream of bytes whole and in order, wherever it is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel_common.wire.frames.length_prefix import MessageReader, MessageSizeError, write_message

SIZE_MAX = 300_000

SIZES = st.integers(0, 20) | st.integers(65_500, 65_600) | st.just(SIZE_MAX)
"""Small ones, some that just fit in the buffer or do not, and the largest."""


def read(reader: MessageReader, stream: bytes, cuts: list[int]) -> list[bytes | bytearray]:
    """Let a stream arrive in pieces of these sizes, over and over; returns its messages."""
    messages: list[bytes | bytearray] = []
    arrived = 0
    while arrived < len(stream):
        for cut in cuts:
            room = reader.room()
            piece = stream[arrived : arrived + min(cut, len(room))]
            room[: len(piece)] = piece
            reader.filled(len(piece))
            arrived += len(piece)
            while (message := reader.next_message()) is not None:
                messages.append(message)
            if reader.announced:
                reader.begin_large()
    return messages


@given(
    sizes=st.lists(SIZES, max_size=8),
    cuts=st.lists(st.integers(1, 30) | st.integers(1_000, SIZE_MAX), min_size=1, max_size=5),
)
def test_it_does_not_matter_where_the_network_cuts(sizes: list[int], cuts: list[int]) -> None:
    cuts.append(SIZE_MAX)  # or a large message takes a while
    messages = [bytes((number,)) * size for number, size in enumerate(sizes)]
    stream = b"".join(write_message((message[:7], message[7:])) for message in messages)
    assert read(MessageReader(SIZE_MAX), stream, cuts) == messages


def test_a_message_stays_as_it_is_while_others_arrive() -> None:
    stream = write_message((b"a" * 100_000,)) + write_message((b"b" * 100_000,))
    first, second = read(MessageReader(SIZE_MAX), stream, [SIZE_MAX])
    assert (set(first), set(second)) == ({ord("a")}, {ord("b")})


def test_a_larger_message_is_an_error_before_it_arrives() -> None:
    reader = MessageReader(10)
    with pytest.raises(MessageSizeError, match="11 bytes, more than 10"):
        read(reader, (11).to_bytes(4), [SIZE_MAX])


def test_bytes_of_another_protocol_are_shown() -> None:
    reader = MessageReader(SIZE_MAX)
    with pytest.raises(MessageSizeError, match=r"^b'HTTP' announces .*sends no frames of Semel$"):
        read(reader, b"HTTP/1.1 400 Bad Request", [SIZE_MAX])


def test_a_reader_of_small_messages_has_no_more_memory_than_one_of_them() -> None:
    assert len(MessageReader(10).room()) == 4 + 10


def test_larger_messages_are_taken_from_then_on() -> None:
    stream = write_message((b"small",)) + write_message((b"x" * SIZE_MAX,))
    reader = MessageReader(10)
    reader.room()[:14] = stream[:14]
    reader.filled(14)
    assert reader.next_message() == b"small"
    reader.take_up_to(SIZE_MAX)
    assert reader.next_message() is None
    assert read(reader, stream[14:], [1_000]) == [b"x" * SIZE_MAX]


def test_memory_follows_the_bytes_that_have_arrived_not_the_length_that_was_announced() -> None:
    reader = MessageReader(64 << 20)
    stream = write_message((bytes(64 << 20),))
    arrived, message = 0, None
    while arrived < len(stream):
        room = reader.room()
        assert arrived + len(room) <= max(128 << 10, 4 * arrived + 4)
        piece = stream[arrived : arrived + len(room)]
        room[: len(piece)] = piece
        reader.filled(len(piece))
        arrived += len(piece)
        message = reader.next_message()
        if reader.announced:
            assert arrived >= 64 << 10
            reader.begin_large()
    assert message == stream[4:]


def test_an_announcement_alone_takes_no_memory() -> None:
    reader = MessageReader(64 << 20)
    reader.room()[:1_000] = (64 << 20).to_bytes(4) + bytes(996)
    reader.filled(1_000)
    assert reader.next_message() is None
    assert not reader.announced
    assert len(reader.room()) == (64 << 10) - 1_000
