"""The books of a server: how much of its limits each caller holds, and how much it may hold.

Streams, unary calls, requests in flight and bytes in flight are divided alike. One caller may hold
up to its share; all callers together leave the reserve to the cluster's own principals, which have
no share.
A caller is a principal. Where nothing tells callers apart, a caller is an address: one host does
not shut out the others. An IPv6 address counts as its network of 64 bits, which one host has whole.

A caller that holds nothing may take one thing of any size that fits all: otherwise a message that
is larger than a share would wait for ever.
"""

import asyncio
import ipaddress
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote
from weakref import WeakValueDictionary

from semel_runtime.authentication.principal import ANONYMOUS, Origin
from semel_runtime.server.limits.server_limits import ServerLimits

_IPV6_NETWORK_BITS = 64
_PERCENT = 100


class Holder(NamedTuple):
    """Whose share it is."""

    name: str
    is_cluster: bool = False


def holder_of(origin: Origin) -> Holder:
    """Return whose share the calls of an origin take."""
    principal = origin.principal
    if principal is ANONYMOUS or principal == ANONYMOUS:
        return Holder(origin.host)
    return Holder(str(principal), principal.is_cluster)


@lru_cache(maxsize=4_096)
def host_of_peer(peer: str) -> str:
    """Return the host of gRPC's ``ipv4:HOST:PORT``, ``ipv6:[HOST]:PORT`` or ``unix:PATH``."""
    family, _, rest = peer.partition(":")
    if family not in ("ipv4", "ipv6"):
        return family
    return host_of_address(_address_in(rest))


def address_of_peer(peer: str) -> str:
    """Return the address itself, for people; of a socket on this machine, what it is."""
    family, _, rest = peer.partition(":")
    return _address_in(rest) if family in ("ipv4", "ipv6") else family


def _address_in(rest: str) -> str:
    return unquote(rest.rpartition(":")[0]).strip("[]")


@lru_cache(maxsize=4_096)
def host_of_address(address: str) -> str:
    """Return what counts as one host: an IPv4 address, or the network of an IPv6 address."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_NETWORK_BITS), strict=False))


class Book:
    """How much there is of one thing, and how much of it is taken."""

    def __init__(self, name: str, total: int, limits: ServerLimits) -> None:
        """Begin with nothing taken; ``name`` is for errors."""
        self.name = name
        self.total = total
        self.for_others = total - total * limits.cluster_reserve_percent // _PERCENT
        self.share = max(1, total * limits.principal_share_percent // _PERCENT)
        self.held = 0
        self.waiting: dict[Share, None] = {}
        self._waking = False

    def wait(self, share: "Share") -> None:
        """Let the streams that wait for room in a share have their turn when there is some."""
        self.waiting[share] = None

    def wake_soon(self) -> None:
        """Call the streams that wait, once what the current step gives back is counted."""
        if not self._waking:
            self._waking = True
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._waking = False
        for share in tuple(self.waiting):
            if not share.wake():
                del self.waiting[share]


class _Waiter(NamedTuple):
    """A stream that waits for room."""

    amount: int
    granted: Callable[[], None]


class Share:
    """What one caller holds of one thing."""

    __slots__ = ("_waiters", "book", "held", "most", "of_all")

    def __init__(self, book: Book, holder: Holder) -> None:
        """Begin with nothing."""
        self.book = book
        self.most = book.total if holder.is_cluster else book.share
        self.of_all = book.total if holder.is_cluster else book.for_others
        self._waiters: dict[object, _Waiter] = {}
        self.held = 0

    def has_room(self, amount: int = 1) -> bool:
        """Whether the caller may take so much now."""
        held = self.held
        return (held + amount <= self.most or not held) and self.book.held + amount <= self.of_all

    def is_full(self) -> bool:
        """Whether the caller may take nothing more."""
        return self.held >= self.most or self.book.held >= self.of_all

    def why_full(self) -> str:
        """Return the sentence that says how much is taken."""
        book = self.book
        if self.held >= self.most:
            return f"this caller has {self.held} {book.name}, and its share is {self.most}"
        return (
            f"all callers have {book.held} {book.name}, and {book.total - self.of_all} of"
            f" {book.total} are kept for the cluster itself"
        )

    def take(self, amount: int = 1) -> None:
        """Take so much, also past the share: the caller of this method asks ``has_room``."""
        self.held += amount
        self.book.held += amount

    def give_back(self, amount: int = 1) -> None:
        """Give so much back."""
        book = self.book
        self.held -= amount
        book.held -= amount
        if book.waiting:
            book.wake_soon()

    def wait(self, stream: object, amount: int, granted: Callable[[], None]) -> None:
        """Call ``granted`` once, when there is room for so much; streams have their turn in order.

        ``granted`` takes what it needs.
        """
        self._waiters[stream] = _Waiter(amount, granted)
        self.book.wait(self)

    def leave(self, stream: object) -> None:
        """Let a stream wait no longer."""
        self._waiters.pop(stream, None)

    def wake(self) -> bool:
        """Call the streams for which there is room; returns whether others still wait."""
        for stream, waiter in tuple(self._waiters.items()):
            if not self.has_room(waiter.amount):
                return True
            if self._waiters.pop(stream, None) is not None:
                waiter.granted()
        return bool(self._waiters)


class Shares:
    """What one caller holds."""

    __slots__ = ("__weakref__", "calls", "in_flight_bytes", "requests", "streams")

    def __init__(self, ledger: "Ledger", holder: Holder) -> None:
        """Begin with nothing."""
        self.streams = Share(ledger.streams, holder)
        self.calls = Share(ledger.calls, holder)
        self.requests = Share(ledger.requests, holder)
        self.in_flight_bytes = Share(ledger.in_flight_bytes, holder)


class Ledger:
    """The books of one process: all its listeners share what there is."""

    def __init__(self, limits: ServerLimits) -> None:
        """Begin with nothing taken."""
        self.streams = Book("frame streams", limits.streams_max, limits)
        self.calls = Book("unary calls", limits.concurrent_calls_max, limits)
        self.requests = Book("requests in flight", limits.requests_in_flight_max, limits)
        self.in_flight_bytes = Book("bytes in flight", limits.in_flight_max_bytes, limits)
        self._callers: WeakValueDictionary[Holder, Shares] = WeakValueDictionary()

    def of(self, origin: Origin) -> Shares:
        """Return the shares of a caller, which last as long as something holds this object."""
        holder = holder_of(origin)
        shares = self._callers.get(holder)
        if shares is None:
            shares = self._callers[holder] = Shares(self, holder)
        return shares
