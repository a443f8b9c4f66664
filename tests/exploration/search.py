"""Breadth first through all states, so that the first violation has a shortest trace."""

import time
from array import array
from dataclasses import dataclass

from exploration.cluster import Cluster, State
from exploration.services import ViolationError

_NO_PARENT = -1


@dataclass(frozen=True, slots=True)
class Explored:
    """The result of a search."""

    states: int
    depth: int
    """Every state is known that is reached by so many events."""
    exhausted: bool
    seconds: float
    machine_states: int
    violation: str = ""
    trace: tuple[str, ...] = ()


class Search:
    """One search."""

    def __init__(self, *, seconds: float, states_max: int) -> None:
        self._cluster = Cluster()
        self._until = time.perf_counter() + seconds
        self._began = time.perf_counter()
        self._states_max = states_max
        # Of a state that was seen, its hash is left, and which event led to it from which other.
        self._seen: set[int] = set()
        self._parents = array("q")
        self._events = array("q")
        self._event_numbers: dict[object, int] = {}
        self._event_list: list[object] = []

    def run(self) -> Explored:
        """Go on until there is a violation, nothing new, or no more time or room."""
        first = self._cluster.first()
        level = [(self._enter(first, _NO_PARENT, "begin"), first)]
        depth = 0
        while level:
            following: list[tuple[int, State]] = []
            for number, state in level:
                violation = self._expand(number, state, following)
                if violation is not None:
                    return self._explored(depth, False, violation)
                if number % 256 == 0 and self._is_over():
                    return self._explored(depth, False, None)
            level = following
            depth += 1
        return self._explored(depth, True, None)

    def _expand(
        self, number: int, state: State, following: list[tuple[int, State]]
    ) -> tuple[int, object, str] | None:
        """Find the states that follow a state. Returns a violation: its state and its event."""
        cluster, seen = self._cluster, self._seen
        event: object = "what follows"
        try:
            for event, after in cluster.following(state):
                if hash(after) in seen:
                    continue
                cluster.check(after)
                following.append((self._enter(after, number, event), after))
        except (ViolationError, AssertionError) as violation:
            return number, event, f"{type(violation).__name__}: {violation}"
        return None

    def _enter(self, state: State, parent: int, event: object) -> int:
        self._seen.add(hash(state))
        known = self._event_numbers.get(event)
        if known is None:
            known = self._event_numbers[event] = len(self._event_list)
            self._event_list.append(event)
        self._parents.append(parent)
        self._events.append(known)
        return len(self._parents) - 1

    def _is_over(self) -> bool:
        return len(self._seen) >= self._states_max or time.perf_counter() >= self._until

    def _explored(
        self, depth: int, exhausted: bool, violation: tuple[int, object, str] | None
    ) -> Explored:
        cluster = self._cluster
        nodes = [cluster.coordinator, *cluster.participants.values()]
        return Explored(
            states=len(self._parents),
            depth=depth,
            exhausted=exhausted,
            seconds=time.perf_counter() - self._began,
            machine_states=sum(map(len, nodes)),
            violation="" if violation is None else violation[2],
            trace=() if violation is None else self._trace(violation[0], violation[1]),
        )

    def _trace(self, number: int, last: object) -> tuple[str, ...]:
        events = [last]
        while self._parents[number] != _NO_PARENT:
            events.append(self._event_list[self._events[number]])
            number = self._parents[number]
        return tuple(str(event) for event in reversed(events))


def explore(*, seconds: float, states_max: int = 20_000_000) -> Explored:
    """Search for so long."""
    return Search(seconds=seconds, states_max=states_max).run()
