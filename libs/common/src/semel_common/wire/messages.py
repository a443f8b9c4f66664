"""Messages in a stream of bytes: each is its length, four bytes, and that many bytes. No I/O.

Whoever reads a socket puts what arrives where ``MessageReader`` says, so that the bytes of a large
message are put where they stay: they are not copied again until they are parsed.
"""

from collections.abc import Sequence

_LENGTH_BYTES = 4
_BUFFER_BYTES = 64 << 10
"""Messages that do not fit in here get memory of their own."""

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
    """

    def __init__(self, size_max_bytes: int) -> None:
        """Start with nothing; a message of more than ``size_max_bytes`` is an error.

        Until there may be more, no more memory is taken than for one such message.
        """
        self._size_max_bytes = size_max_bytes
        self._buffer = bytearray(min(_LENGTH_BYTES + size_max_bytes, _BUFFER_BYTES))
        self._begin = 0
        """Of what is in the buffer and was not given yet."""
        self._end = 0
        self._large: bytearray | None = None
        """A message with memory of its own, of which so much is there:"""
        self._large_end = 0

    def take_up_to(self, size_max_bytes: int) -> None:
        """Take larger messages from the next one on."""
        self._size_max_bytes = size_max_bytes
        rest = self._buffer[self._begin : self._end]
        self._buffer = bytearray(_BUFFER_BYTES)
        self._buffer[: len(rest)] = rest
        self._begin, self._end = 0, len(rest)

    def room(self) -> memoryview:
        """Return where the next bytes go; never empty once ``next_message`` has given None."""
        if self._large is not None:
            return memoryview(self._large)[self._large_end :]
        return memoryview(self._buffer)[self._end :]

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
            raise MessageSizeError(f"a message of {length} bytes is larger than is taken")
        if begin + length <= self._end:
            self._begin = begin + length
            return bytes(memoryview(self._buffer)[begin : self._begin])
        if _LENGTH_BYTES + length > len(self._buffer):
            self._begin_large(begin, length)
        else:
            self._move_to_front()
        return None

    def _next_large(self, message: bytearray) -> bytearray | None:
        if self._large_end < len(message):
            return None
        self._large = None
        return message

    def _begin_large(self, begin: int, length: int) -> None:
        self._large = bytearray(length)
        self._large_end = self._end - begin
        self._large[: self._large_end] = memoryview(self._buffer)[begin : self._end]
        self._begin = self._end = 0

    def _move_to_front(self) -> None:
        """Make room for the rest of a message."""
        rest = self._buffer[self._begin : self._end]
        self._buffer[: len(rest)] = rest
        self._begin, self._end = 0, len(rest)
