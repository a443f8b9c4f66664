"""When a marker is sent again: the pauses, and the participants that are held. Pure: time is given.

Theory of operation. After a request without an answer, all markers of the instance wait for a
pause. A participant that refuses its marker is *held*: its marker, and every later marker for it,
wait for a pause of its own, while all other participants get theirs. Each pause doubles.
"""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from semel_common.ids import Participant, participant_sort_key
from semel_coordinator.transactions.markers.marker import Marker
from semel_coordinator.transactions.markers.options import MarkerOptions


class Pauses:
    """The pauses before retries."""

    def __init__(self, options: MarkerOptions, *, jitter: Callable[[], float]) -> None:
        """Take a `jitter` that gives 0 to 1."""
        self._options = options
        self._jitter = jitter

    def after(self, failures: int) -> float:
        """Return seconds: doubling, bounded, and shortened by chance to half at most."""
        options = self._options
        longest_ms = min(options.backoff_max_ms, options.backoff_ms << min(failures - 1, 30))
        return longest_ms * (1.0 - self._jitter() / 2) / 1000


class Due(NamedTuple):
    """When the markers of a held participant are sent again; ordered by that."""

    at: float
    participant_key: tuple[int, str, int]
    participant: Participant


class HeldMarkers:
    """The held participants of one instance, and their markers in order."""

    __slots__ = ("_due", "_markers")

    def __init__(self) -> None:
        self._markers: dict[Participant, list[Marker]] = {}
        """Each marker is for this one participant."""
        self._due: list[Due] = []
        """A heap with one entry for each participant."""

    def __len__(self) -> int:
        """Return how many markers wait."""
        return sum(map(len, self._markers.values()))

    def __bool__(self) -> bool:
        """Whether any participant is held."""
        return bool(self._markers)

    @property
    def until(self) -> float | None:
        """When the next participant may be asked again; None: no participant is held."""
        return self._due[0].at if self._due else None

    def hold(self, participant: Participant, marker: Marker, *, until: float) -> None:
        """Hold a participant that has refused its marker."""
        self._markers[participant] = [marker.part_for((participant,))]
        heappush(self._due, Due(until, participant_sort_key(participant), participant))

    def follow(self, participant: Participant, marker: Marker) -> bool:
        """Let a marker wait behind the earlier ones if its participant is held; return whether."""
        held = self._markers.get(participant)
        if held is None:
            return False
        held.append(marker.part_for((participant,)))
        return True

    def release(self, now: float) -> Iterator[Marker]:
        """Take out the markers whose time has come: of each participant, the last one first."""
        while self._due and self._due[0].at <= now:
            participant = heappop(self._due).participant
            yield from reversed(self._markers.pop(participant))
