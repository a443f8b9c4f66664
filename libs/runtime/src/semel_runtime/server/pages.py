"""Pages of lists: how much of a list one answer has, and where the next one begins.

A list is in the order of a key, and a page's token has the last key that the page has looked at. So
pages stay right while the list changes: a key that stays from the first page to the last is listed
exactly once. A page fits a message whatever its entries are, also for a client that names no limit.

A token begins with a checksum of its list and key. So an instance takes the tokens of any other
instance, and refuses a text that is no token, or the token of another list. The checksum is no
secret: a token is only a place in a list, and gives no permission.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar
from zlib import crc32

from google.protobuf.message import Message

from semel_common.errors import InvalidRequestError, MessageTooLargeError
from semel_common.wire.messages.request_bounds import PAGE_TOKEN_LENGTH_MAX
from semel_runtime.server.form_checks import require_int, shown
from semel_runtime.server.limits.list_turns import pause

ITEMS_MAX = 10_000
"""The most entries of a page, and as many as a page has if no limit is named."""
BYTES_MAX = 3 << 20
"""About the most bytes of a page, so that it fits the 4 MiB that gRPC's clients take by default."""
_SORTED_PER_TURN = 5_000
"""Keys that are sorted before others have their turn."""
_CHECKSUM_LENGTH = 8
"""Characters of a checksum, in hexadecimal."""

Position = TypeVar("Position")


class Page:
    """How full one page is."""

    def __init__(self, limit: int, *, unless_limited: int | None = None) -> None:
        """Begin a page of so many entries; 0: of ``unless_limited``, or else of ITEMS_MAX.

        Raises InvalidRequestError.
        """
        self.items_max = require_int("limit", limit, maximum=ITEMS_MAX) or (
            ITEMS_MAX if unless_limited is None else unless_limited
        )
        """How many entries it has at the most."""
        self._items_left = self.items_max
        self._bytes_left = BYTES_MAX
        self._is_empty = True

    def takes(self, *entries: Message) -> bool:
        """Count entries that stand together; False: they belong on the next page.

        The first ones are always taken.
        """
        size_bytes = sum(entry.ByteSize() for entry in entries)
        is_full = len(entries) > self._items_left or size_bytes > self._bytes_left
        if is_full and not self._is_empty:
            return False
        self._items_left -= len(entries)
        self._bytes_left -= size_bytes
        self._is_empty = self._is_empty and not entries
        return True


def no_room(what: str) -> MessageTooLargeError:
    """Return the error of an item of a request whose answer has no room for it any more."""
    return MessageTooLargeError(
        f"the answer has about {BYTES_MAX} bytes already, and no room for {what}: ask for it in"
        " another request",
        size_max_bytes=BYTES_MAX,
    )


@dataclass(frozen=True, slots=True)
class PageTokens:
    """The page tokens of one list."""

    rpc: str
    """The RPC that answers the list."""
    of: str = ""
    """The resource whose list it is, if the RPC has a list for each of several."""

    def after(self, key: str) -> str:
        """Return the token of a page that ends with this key."""
        return f"{self._checksum(key)}{key}"

    def key(self, token: str) -> str | None:
        """Return the key behind which a page begins; None: the first page.

        Raises InvalidRequestError for a token that no answer had.
        """
        if not token:
            return None
        if len(token) > PAGE_TOKEN_LENGTH_MAX:
            raise InvalidRequestError(
                f"page_token has {len(token)} characters: send one as an answer gave it",
                field="page_token",
            )
        key = token[_CHECKSUM_LENGTH:]
        if token != self.after(key):
            raise self.unknown(token)
        return key

    def position(
        self, token: str, behind: str, parsed: Callable[[str], Position | None]
    ) -> Position | None:
        """Return the position behind which a page begins: that of its token, or the one given.

        None: the first page. ``parsed`` reads a position, and returns None for any other text.
        Raises InvalidRequestError.
        """
        key = self.key(token)
        if key is not None:
            position = parsed(key)
            if position is None:
                raise self.unknown(token)
            return position
        return position_behind(behind, parsed)

    def unknown(self, token: str) -> InvalidRequestError:
        """Return the error of a token that no answer had."""
        of = f" of {self.of!r}" if self.of else ""
        return InvalidRequestError(
            f"page_token is {token[:80]!r}, which no answer of {self.rpc}{of} gave: send"
            " next_page_token of the answer before, or no token to begin the list",
            field="page_token",
        )

    def _checksum(self, key: str) -> str:
        text = f"{self.rpc}\0{self.of}\0{key}"
        return f"{crc32(text.encode()):0{_CHECKSUM_LENGTH}x}"


def position_behind(behind: str, parsed: Callable[[str], Position | None]) -> Position | None:
    """Return the position that a request gives; None: it gives none.

    Raises InvalidRequestError for any other text.
    """
    if not behind:
        return None
    position = parsed(behind)
    if position is None:
        raise InvalidRequestError(
            f"behind is {shown(behind)!r}: send the position of an entry", field="behind"
        )
    return position


def refuse_token(token: str, *, unless: str) -> None:
    """Refuse a page token in a request for no pages. Raises InvalidRequestError."""
    if token:
        raise InvalidRequestError(
            f"page_token is {token[:80]!r} in a request without {unless}: set {unless}, or send no"
            " token",
            field="page_token",
        )


async def names_after(
    names: Sequence[str], token: str, *, with_token: bool = False
) -> Iterator[str]:
    """Return the names behind a token, in order; others have turns while the names are sorted.

    ``with_token``: the name that the token is, too.
    """
    begin = bisect_left if with_token else bisect_right
    runs = []
    for start in range(0, len(names), _SORTED_PER_TURN):
        run = sorted(names[start : start + _SORTED_PER_TURN])
        runs.append(run[begin(run, token) :])
        await pause()
    return heapq.merge(*runs)
