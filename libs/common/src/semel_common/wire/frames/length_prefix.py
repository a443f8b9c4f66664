"""Messages in a stream of bytes: each is its length, four bytes, and that many bytes. No I/O.

A socket puts its bytes where ``MessageReader`` says. Memory follows the bytes that arrive, not the
length that is announced: when the memory of a message is full, the message goes on in four times as
much, until it has its whole size. So a third of its bytes is copied once, and a sender makes the
reader hold at most four times of the bytes that it has sent.
"""

from collections.abc import Sequence

_LENGTH_BYTES = 4
_BUFFER_BYTES = 64 << 10
"""Messages that do not fit in here get memory of their own."""
_GROWTH = 4
"""How many times more memory a message gets when what it has is full."""

SIGN_OF_LIFE = bytes(_LENGTH_BYTES)
"""A message without content, as it is written."""


class MessageSizeError(ValueError):
    """A length is no length of ours."""


def write_message(parts: Sequence[bytes]) -> bytes:
    """Return the bytes of one message that is given in parts."""
    return b"".join((sum(map(len, parts)).to_bytes(_LENGTH_BYTES), *parts))


class MessageReader:
    """Takes bytes as they arrive, and gives messages.

    Bytes are taken by ``room`` and ``filled``; then ``next_message`` is asked until it gives None.
    If a large message is ``announced`` then, ``begin_large`` comes before the next ``room``.
    """

    def __init__(self, size_max_bytes: int) -> None:
        """Start with nothing; a message of more than ``size_max_bytes`` is an error.

        Until there may be more, no more memory is taken than for one such message.
        """
        self._size_max_bytes = size_max_bytes
        self._buffer = bytearray(min(_LENGTH_BYTES + size_max_bytes, _BUFFER_BYTES))
        self._begin = 0
        """The begin of the bytes in the buffer that were not given yet."""
        self._end = 0
        self._large: bytearray | None = None
        """The memory that a large message has so far; how much of it is filled; and its size."""
        self._large_end = 0
        self._large_size = 0
        self.announced = 0
        """The size of a message that has filled the buffer, and is not whole; else 0."""

    def take_up_to(self, size_max_bytes: int) -> None:
        """Take larger messages from the next one on."""
        self._size_max_bytes = size_max_bytes
        rest = self._buffer[self._begin : self._end]
        self._buffer = bytearray(_BUFFER_BYTES)
        self._buffer[: len(rest)] = rest
        self._begin, self._end = 0, len(rest)

    def room(self) -> memoryview:
        """Return where the next bytes go; never empty once ``next_message`` has given None."""
        if self._large is None:
            return memoryview(self._buffer)[self._end :]
        if self._large_end == len(self._large):
            self._large = self._grown(self._large)
        return memoryview(self._large)[self._large_end :]

    def filled(self, count: int) -> None:
        """Know that so many bytes have been put there."""
        if self._large is not None:
            self._large_end += count
        else:
            self._end += count

    def next_message(self) -> bytes | bytearray | None:
        """Return the next message that is whole, and forget it. Raises MessageSizeError."""
        if self._large is not None:
            return self._next_large(self._large)
        begin = self._begin + _LENGTH_BYTES
        if begin > self._end:
            self._move_to_front()
            return None
        length = int.from_bytes(self._buffer[self._begin : begin])
        if length > self._size_max_bytes:
            begins = bytes(self._buffer[self._begin : begin])
            raise MessageSizeError(
                f"{begins!r} announces a message of {length:,} bytes, more than"
                f" {self._size_max_bytes:,}: the other side sends no frames of Semel"
            )
        if begin + length <= self._end:
            self._begin = begin + length
            return bytes(memoryview(self._buffer)[begin : self._begin])
        self._move_to_front()
        if self._end == len(self._buffer):
            self.announced = length
        return None

    def begin_large(self) -> None:
        """Give the announced message memory of its own."""
        self._large_size, self.announced = self.announced, 0
        self._large_end = self._end - _LENGTH_BYTES
        self._large = bytearray(min(self._large_size, _GROWTH * _BUFFER_BYTES))
        self._large[: self._large_end] = memoryview(self._buffer)[_LENGTH_BYTES : self._end]
        self._end = 0

    def _grown(self, full: bytearray) -> bytearray:
        larger = bytearray(min(self._large_size, _GROWTH * len(full)))
        larger[: len(full)] = full
        return larger

    def _next_large(self, message: bytearray) -> bytearray | None:
        if self._large_end < self._large_size:
            return None
        self._large = None
        return message

    def _move_to_front(self) -> None:
        """Make room for the rest of a message."""
        if not self._begin:
            return
        rest = self._buffer[self._begin : self._end]
        self._buffer[: len(rest)] = rest
        self._begin, self._end = 0, len(rest)
