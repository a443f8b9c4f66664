"""Which coordinator to ask next: all addresses in turn, and addresses that have failed last."""

from collections.abc import Iterable, Sequence

from aiosemel._cluster.permanent_errors import UNHEALED
from aiosemel.errors import (
    InvalidResponseError,
    NetworkExceptionError,
    RequestTimedOutError,
    RetriableError,
)
from semel_common.addresses import is_loopback
from semel_common.wire.diagnosis.call_diagnosis import SERVICE
from semel_common.wire.diagnosis.peer_probe import CAUSE, REFUSED

UNREACHABLE = (NetworkExceptionError, RequestTimedOutError)
"""Errors of a call whose address is asked last from then on."""


class Coordinators:
    """The addresses at which some coordinator may answer, in the order in which to ask them."""

    def __init__(self, bootstrap: tuple[str, ...]) -> None:
        """Know the addresses to begin with."""
        self._bootstrap = bootstrap
        self._known: tuple[str, ...] = ()
        self._asked = 0
        self._failures: dict[str, int] = {}
        """By address that has failed since its last answer: the number of that failure."""
        self._failure_count = 0

    def know(self, addresses: Iterable[str]) -> None:
        """Take the addresses that the coordinators of the cluster advertise."""
        self._known = tuple(addresses)
        if self._failures:
            self._failures = {each: n for each, n in self._failures.items() if each in self.all}

    @property
    def all(self) -> tuple[str, ...]:
        """All addresses, those of the cluster first."""
        return (*self._known, *(each for each in self._bootstrap if each not in self._known))

    def round(self) -> tuple[str, ...]:
        """Return each address once, in the order in which to ask: so every round finds a live one.

        The next round begins with another address. Addresses that have failed come last, and first
        of them the one that failed longest ago.
        """
        addresses = self.all
        begin = self._asked % len(addresses)
        self._asked += 1
        turn = (*addresses[begin:], *addresses[:begin])
        return tuple(sorted(turn, key=lambda address: self._failures.get(address, 0)))

    def next(self) -> str:
        """Return the address to ask next."""
        return self.round()[0]

    def answered(self, address: str) -> None:
        """Know that a service has answered at an address."""
        if self._failures:
            self._failures.pop(address, None)

    def failed(self, address: str) -> None:
        """Know that no service has answered at an address; of others than coordinators: nothing."""
        if address not in self.all:
            return
        self._failure_count += 1
        self._failures[address] = self._failure_count


def unreachable(errors: Sequence[RetriableError], *, is_first: bool = False) -> RetriableError:
    """Return one error for a round in which each address has failed: it names all causes.

    ``is_first``: no coordinator has answered yet, so the addresses are those of the user, and the
    address of another service stays wrong.
    """
    if is_first:
        errors = [*map(_as_unhealed, errors)]
    texts = dict.fromkeys(map(_with_advice, errors))
    # If time may heal the trouble at one address, the client goes on.
    last = next(
        (error for error in reversed(errors) if not isinstance(error, UNHEALED)), errors[-1]
    )
    return type(last)("; ".join(texts), **last.details)


def are_wrong_services(errors: Sequence[RetriableError]) -> bool:
    """Whether another service of Semel has answered at each address."""
    return all(SERVICE in error.details for error in errors)


def _as_unhealed(error: RetriableError) -> RetriableError:
    if SERVICE in error.details:
        return InvalidResponseError(error.message, **error.details)
    return error


def _with_advice(error: RetriableError) -> str:
    address = error.details.get("address", "")
    if error.details.get(CAUSE) == REFUSED and is_loopback(address.rpartition(":")[0]):
        return f"{error.message}; `semel up` starts a cluster"
    if SERVICE in error.details:
        return f"{error.message}: name the address of a coordinator"
    return error.message
