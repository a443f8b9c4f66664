"""Which markers are still to be delivered, to whom, in which order. Pure: time is given.

Theory of operation. A decided transaction becomes one marker for each instance that has
participants of it. Each instance has a lane: a queue, from which one batch at a time is in flight.

    queue ──next_batch──► in flight ──delivered──► acknowledged (the transaction's last: finished)
      ▲                        ├──undelivered────► all back to the queue's head; the lane pauses
      │                        ├──rejected───────► the same, but the next batch has half the markers
      └────── when due ── held ◄── refused, one participant of a marker

Markers of a participant never overtake one another: while it is held, later ones wait behind. A
marker that goes back into a queue is routed again, so it follows a partition to another leader;
there it may come after a later one, which a participant accepts: each ends an epoch's transaction
of its own. Markers of a transaction-log partition that has moved are dropped wherever the plan
finds them. A partition that has no leader here goes to the lane NOWHERE, where "deliver" means to
find out whether it was deleted. Only `stop` and `drop` give a marker up: to forget a marker would
be to forget an outcome. The length of pauses, and held participants: ``retries.py``.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from semel_common.ids import Participant, transaction_log_partition_of
from semel_coordinator.transactions.machine import DecidedTransaction, TransactionKey
from semel_coordinator.transactions.machine.state.entities import ParticipantSet, in_order
from semel_coordinator.transactions.markers.marker import Marker, Target
from semel_coordinator.transactions.markers.options import MarkerOptions
from semel_coordinator.transactions.markers.retries import HeldMarkers, Pauses


@dataclass(slots=True)
class Lane:
    """What one instance is still to be told."""

    batch_max: int
    """Markers in the next batch, at most."""
    queue: deque[Marker] = field(default_factory=deque)
    in_flight: list[Marker] = field(default_factory=list)
    held: HeldMarkers = field(default_factory=HeldMarkers)
    failures: int = 0
    """How often in a row the instance could not be reached."""
    not_before: float = 0.0


class LaneStanding(NamedTuple):
    """How much one instance is still to be told."""

    pending: int
    """Markers, those in flight included."""
    in_flight: int
    failures: int
    """How often in a row it was not reached."""


class MarkerPlan:
    """All lanes."""

    def __init__(
        self,
        options: MarkerOptions,
        *,
        route: Callable[[Participant], Target],
        wake: Callable[[Target], None],
        jitter: Callable[[], float],
    ) -> None:
        """Call `wake` when there is something new for a target; `jitter` gives 0 to 1."""
        self._options = options
        self._route = route
        self._wake = wake
        self._pauses = Pauses(options, jitter=jitter)
        self._lanes: dict[Target, Lane] = {}
        self._missing: dict[TransactionKey, dict[Participant, None]] = {}
        self._earlier: dict[TransactionKey, dict[Participant, float]] = {}
        """When participants have acknowledged, of transactions of which others had not then."""
        self._refusals: dict[Participant, int] = {}
        """How often in a row a participant has refused."""
        self._stopped: set[int] = set()

    # -- questions -----------------------------------------------------------------------------

    def missing(self, key: TransactionKey) -> ParticipantSet | None:
        """Return the participants that have not acknowledged; None for an unknown transaction."""
        missing = self._missing.get(key)
        return None if missing is None else in_order(missing)

    def due_at(self, target: Target) -> float | None:
        """Return when `next_batch` may have something; None: not before `wake` is called."""
        lane = self._lanes[target]
        if lane.queue:
            return lane.not_before
        held_until = lane.held.until
        return None if held_until is None else max(lane.not_before, held_until)

    def failures_of(self, target: Target) -> int:
        """Return how often in a row a target could not be reached."""
        return self._lanes[target].failures

    def standing(self) -> Iterator[tuple[Target, LaneStanding]]:
        """Yield how each lane stands."""
        for target, lane in self._lanes.items():
            pending = len(lane.queue) + len(lane.in_flight) + len(lane.held)
            yield target, LaneStanding(pending, len(lane.in_flight), lane.failures)

    # -- what happens --------------------------------------------------------------------------

    def add(self, decided: DecidedTransaction) -> None:
        """Plan a transaction's markers. Repeats, and ones without participants, are ignored."""
        key = decided.key
        if key in self._missing or not decided.participant_count:
            return
        self._missing[key] = dict.fromkeys((*decided.committing, *decided.aborting))
        if decided.committing:
            self._plan(decided, decided.committing, commit=True)
        if decided.aborting:
            self._plan(decided, decided.aborting, commit=False)

    def next_batch(self, target: Target, now: float) -> Sequence[Marker]:
        """Take what a target should be told now; the answer is due before the next call."""
        lane = self._lanes[target]
        assert not lane.in_flight, f"{target} has a batch in flight"
        if now < lane.not_before:
            return ()
        for released in lane.held.release(now):
            self._put_back(released)
        room = self._options.batch_participants_max
        while lane.queue and room > 0 and len(lane.in_flight) < lane.batch_max:
            marker = self._sendable(lane, lane.queue.popleft())
            if marker is not None:
                lane.in_flight.append(marker)
                room -= len(marker.participants)
        return lane.in_flight

    def delivered(
        self, target: Target, refused: Mapping[int, ParticipantSet], now: float
    ) -> list[TransactionKey]:
        """Note an answer; `refused` has the markers not taken, by their index in the batch.

        Returns the transactions whose last participant has acknowledged.
        """
        lane = self._lanes[target]
        batch, lane.in_flight, lane.failures = lane.in_flight, [], 0
        lane.batch_max = min(lane.batch_max * 2, self._options.batch_markers_max)
        finished: list[TransactionKey] = []
        for index, marker in enumerate(batch):
            refusing = refused.get(index)
            for participant in marker.participants:
                if refusing and participant in refusing:
                    self._hold(lane, participant, marker, now)
                else:
                    self._acknowledge(participant, marker.key, finished, now)
        return finished

    def earlier(self, key: TransactionKey) -> Mapping[Participant, float] | None:
        """Return when the participants of a finished transaction acknowledged before the last one.

        Only once. None: it had no other participant.
        """
        return self._earlier.pop(key, None) if self._earlier else None

    def undelivered(self, target: Target, now: float) -> None:
        """Note that the batch in flight got no answer: all of it is sent again, after a pause."""
        lane = self._lanes[target]
        self._put_all_back(lane)
        lane.failures += 1
        lane.not_before = now + self._pauses.after(lane.failures)

    def rejected(self, target: Target, now: float) -> None:
        """Note that the batch in flight, as it is, was called wrong.

        One marker that an instance cannot take must not hold up all others, so batches get smaller
        until it is alone; then its participants have refused it.
        """
        lane = self._lanes[target]
        batch = lane.in_flight
        if len(batch) == 1:
            self.delivered(target, {0: in_order(batch[0].participants)}, now)
        else:
            self._put_all_back(lane)
            lane.batch_max = len(batch) // 2
        # Always the shortest pause: held ones wait for longer and longer.
        lane.not_before = now + self._pauses.after(1)

    def stop(self, transaction_log_partition: int) -> None:
        """Send no more markers of a transaction-log partition: another instance owns it."""
        self._stopped.add(transaction_log_partition)

    def drop(self, transaction_log_partition: int) -> None:
        """Send no more planned markers of a transaction-log partition: it has moved.

        What is planned of it from now on is sent: it may come back.
        """
        self._stopped.discard(transaction_log_partition)
        for key in list(self._missing):
            if transaction_log_partition_of(key.producer_id) == transaction_log_partition:
                del self._missing[key]
                self._earlier.pop(key, None)

    # -- helpers -------------------------------------------------------------------------------

    def _plan(self, decided: DecidedTransaction, those: ParticipantSet, *, commit: bool) -> None:
        marker = Marker(
            key=decided.key,
            commit=commit,
            participants=tuple(those),
            traceparent=decided.traceparent,
        )
        for target, part in self._parts(marker):
            self._lane(target).queue.append(part)
            self._wake(target)

    def _put_all_back(self, lane: Lane) -> None:
        batch, lane.in_flight = lane.in_flight, []
        for marker in reversed(batch):
            self._put_back(marker)

    def _put_back(self, marker: Marker) -> None:
        """Put a marker at the head of the queues where its participants belong now."""
        for target, part in self._parts(marker):
            self._lane(target).queue.appendleft(part)
            self._wake(target)

    def _parts(self, marker: Marker) -> Iterator[tuple[Target, Marker]]:
        by_target: dict[Target, list[Participant]] = {}
        for participant in marker.participants:
            by_target.setdefault(self._route(participant), []).append(participant)
        for target, those in by_target.items():
            yield target, marker.part_for(those)

    def _lane(self, target: Target) -> Lane:
        lane = self._lanes.get(target)
        if lane is None:
            lane = self._lanes[target] = Lane(self._options.batch_markers_max)
        return lane

    def _sendable(self, lane: Lane, marker: Marker) -> Marker | None:
        """Return the part of a marker that may go now; the rest waits behind what is held."""
        if marker.key not in self._missing:
            return None  # It was dropped.
        if self._stopped and transaction_log_partition_of(marker.key.producer_id) in self._stopped:
            return None
        if not lane.held:
            return marker
        free = [each for each in marker.participants if not lane.held.follow(each, marker)]
        return marker.part_for(free) if free else None

    def _hold(self, lane: Lane, participant: Participant, marker: Marker, now: float) -> None:
        if lane.held.follow(participant, marker):
            return
        refusals = self._refusals.get(participant, 0) + 1
        self._refusals[participant] = refusals
        lane.held.hold(participant, marker, until=now + self._pauses.after(refusals))

    def _acknowledge(
        self,
        participant: Participant,
        key: TransactionKey,
        finished: list[TransactionKey],
        now: float,
    ) -> None:
        if self._refusals:
            self._refusals.pop(participant, None)
        missing = self._missing.get(key)
        if missing is None:
            return  # It was dropped while the marker was in flight.
        missing.pop(participant, None)  # Perhaps twice: dropped, and planned again.
        if not missing:
            del self._missing[key]
            finished.append(key)
        else:
            self._earlier.setdefault(key, {})[participant] = now
