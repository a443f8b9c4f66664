"""Invariants of moves of partitions: the new leader has all facts of the old one on disk.

The old leader's journal has said what it has taken over all its lives. Nothing of it may be added
once the partition is handed over, and the new leader goes on from just that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from semel_broker.machine.records import BatchAppended, LogState, LogTakenOver, MarkerAppended
from semel_common.ids import TopicPartition
from semel_local.layout import Role, ServiceName
from simulation.compaction import TABLE
from simulation.disk import SimulatedVolume
from simulation.durable import Durable

Check = Callable[[bool, str], None]


@dataclass(frozen=True, slots=True)
class Place:
    """A broker's journal, over all its lives, and its disk."""

    durable: Durable
    volume: SimulatedVolume


@dataclass(slots=True)
class _Known:
    """The facts about moves in one broker's journal."""

    handed_over: set[int] = field(default_factory=set)
    """Logs that it serves no more."""
    sources: dict[int, int] = field(default_factory=dict)
    """The leader of each log that moves here, by log."""
    taken_over: set[int] = field(default_factory=set)


class Moves:
    """The watch over the moves of all partitions."""

    def __init__(self, places: Mapping[str, Place]) -> None:
        self._places = places
        self._known: dict[str, _Known] = {}
        self.completed = 0

    def on_durable(self, name: ServiceName, record: object, check: Check) -> None:
        """See a record of a broker that is durable."""
        known = self._known.setdefault(str(name), _Known())
        match record:
            case BatchAppended() | MarkerAppended():
                text = f"{record}, after the partition was handed over"
                check(record.log_id not in known.handed_over, text)
            case LogTakenOver():
                check(record.log_id in known.sources, f"{record}, which does not move here")
                known.taken_over.add(record.log_id)
            case LogState():
                self._log(name, known, record, check)
            case _:
                pass

    def _log(self, name: ServiceName, known: _Known, log: LogState, check: Check) -> None:
        if log.leader_id != name.instance_id:
            known.sources[log.log_id] = log.leader_id
            return
        durable = self._places[str(name)].durable
        durable.logs[log.topic_id, log.partition] = log.log_id
        if log.handed_over:
            known.handed_over.add(log.log_id)
            return
        known.handed_over.discard(log.log_id)
        source = known.sources.pop(log.log_id, None)
        if source is not None:
            check(log.log_id in known.taken_over, f"{log} is led here, but was not taken over")
            self._compare(self._places[str(ServiceName(Role.BROKER, source))], name, log, check)
            self.completed += 1

    def _compare(self, old: Place, name: ServiceName, log: LogState, check: Check) -> None:
        """Compare the new leader's log with the old one's, and go on from what that has said."""
        new = self._places[str(name)]
        partition = TopicPartition(log.topic_id, log.partition)
        before = old.durable.logs[partition]
        end = old.durable.log_ends.get(before, 0)
        text = f"{log}: the old leader's log {before} ends at {end}"
        check(log.log_end_offset == end, text)
        start = old.durable.log_starts.get(before, 0)
        check(log.log_start_offset == start, f"{log}: the old leader's starts at {start}")
        if log.topic != TABLE:  # There, a last step of compaction may come after the copy.
            kept = _stored(old.volume, before, start)
            copied = _stored(new.volume, log.log_id, start)
            # The old leader may have dropped its log by now, and deleted some of it.
            differing = [offset for offset in kept if copied.get(offset) != kept[offset]]
            check(not differing, f"{log}: differs from the old leader's at {differing}")
        new.durable.go_on_from(old.durable, before, log.log_id)


def _stored(volume: SimulatedVolume, log_id: int, start: int) -> dict[int, object]:
    batches = volume.batches_of(log_id)
    return {
        batch.base_offset: (batch.record_count, batch.max_timestamp_ms, batch.header, batch.payload)
        for batch in batches
        if batch.base_offset + batch.record_count > start
    }
