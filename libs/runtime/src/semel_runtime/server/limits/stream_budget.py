"""What one stream has in flight, in the books of its caller: without room, the stream is not read.

The bytes of a request count from the arrival of its message until its answer is written, the bytes
of the answer with them. A large message counts from its announcement, before it takes memory: a
message that has begun to arrive can always be taken whole.
"""

from collections.abc import Callable

from semel_common.wire.frames.pipe import Pipe
from semel_runtime.server.limits.caller_shares import Share, Shares
from semel_runtime.server.limits.server_limits import ServerLimits


class InFlight:
    """The requests and bytes of one stream."""

    def __init__(self, pipe: Pipe, limits: ServerLimits, shares: Shares) -> None:
        """Begin with nothing, and with a pipe that is read."""
        self._pipe = pipe
        self._requests_max = limits.stream_in_flight_requests_max
        self._bytes_max = limits.stream_in_flight_max_bytes
        self._of_requests = shares.requests
        self._of_bytes = shares.in_flight_bytes
        self._reading = True
        self._ended = False
        self.requests = 0
        self.size_bytes = 0

    def take(self, requests: int, size_bytes: int) -> None:
        """Count requests and bytes; pause the pipe if there is no room for more."""
        self.requests += requests
        self.size_bytes += size_bytes
        if requests:
            self._of_requests.take(requests)
        self._of_bytes.take(size_bytes)
        if self._reading and self._full() and not self._ended:
            self._reading = False
            self._pipe.pause_reading()
            self._wait_for_others()

    def release(self, requests: int, size_bytes: int) -> None:
        """Count requests and bytes no more; read on if there is room again."""
        self.requests -= requests
        self.size_bytes -= size_bytes
        self._of_requests.give_back(requests)
        self._of_bytes.give_back(size_bytes)
        if not self._reading:
            self._read_on()

    def end(self) -> None:
        """Leave the pipe as it is from now on: no further message is wanted."""
        self._ended = True
        for share in self._both():
            share.leave(self)

    def clear(self) -> None:
        """Give everything back: the stream is gone."""
        self.end()
        self.release(self.requests, self.size_bytes)

    def _full(self) -> bool:
        """Whether there is no room; asked for every message, so it calls nothing."""
        requests, in_bytes = self._of_requests, self._of_bytes
        return (
            self.size_bytes >= self._bytes_max
            or self.requests >= self._requests_max
            or requests.held >= requests.most
            or requests.book.held >= requests.of_all
            or in_bytes.held >= in_bytes.most
            or in_bytes.book.held >= in_bytes.of_all
        )

    def _read_on(self) -> None:
        if self._reading or self._ended:
            return
        if self._full():
            self._wait_for_others()
        else:
            self._reading = True
            self._pipe.resume_reading()

    def _wait_for_others(self) -> None:
        """Look again when other streams give back what this one lacks."""
        for share in self._both():
            if share.is_full():
                share.wait(self, 1, self._read_on)

    def _both(self) -> tuple[Share, Share]:
        return self._of_requests, self._of_bytes


class ArrivalRoom:
    """Room for large messages that arrive on one stream. Implements ``MessageRoom``."""

    def __init__(self, shares: Shares) -> None:
        """Take nothing yet."""
        self._shares = shares
        self._share = shares.in_flight_bytes

    def take(self, size_bytes: int, granted: Callable[[], None]) -> bool:
        """See ``MessageRoom.take``."""
        if self._share.has_room(size_bytes):
            self._share.take(size_bytes)
            return True
        self._share.wait(self, size_bytes, lambda: self._grant(size_bytes, granted))
        return False

    def give_back(self, size_bytes: int) -> None:
        """See ``MessageRoom.give_back``."""
        self._share.give_back(size_bytes)

    def leave(self) -> None:
        """See ``MessageRoom.leave``."""
        self._share.leave(self)

    def _grant(self, size_bytes: int, granted: Callable[[], None]) -> None:
        self._share.take(size_bytes)
        granted()
