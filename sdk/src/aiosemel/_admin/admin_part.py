"""The common part of all admin calls: the cluster, and a deadline for each call."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel.errors import InvalidRequestError
from aiosemel.types.descriptions import GroupState, TransactionState

_State = TypeVar("_State", GroupState, TransactionState)
_Number = TypeVar("_Number")


class AdminPart:
    """One part of the admin client. Needs no closing."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def _deadline(self) -> Deadline:
        """Return the time of one call, with all its attempts."""
        return Deadline.after_ms(self._cluster.options.default_api_timeout_ms)


def numbers_of(states: Iterable[_State], numbers: Mapping[_State, _Number]) -> list[_Number]:
    """Return states as the contract numbers them.

    Raises InvalidRequestError for a state that a listing cannot select.
    """
    asked = list(states)
    for state in asked:
        if state not in numbers:
            raise InvalidRequestError(f"cannot filter by state {state!s}", field="states")
    return [numbers[state] for state in asked]
