"""Damage that was found in a broker's store: told once for each place, counted, and never served.

The error is CORRUPT_MESSAGE, as for a payload that a client has found damaged itself: to ask again
does not help. Other partitions, and the rest of this one, are served on.
"""

import structlog

from semel_broker.machine.values import LogPlace
from semel_common.errors import CorruptMessageError

log = structlog.get_logger(__name__)

_PLACES_MAX = 10_000
"""So many places are remembered; past them, damage is logged each time that it is met."""


class DamageReports:
    """Every damaged place that was met since the process has started."""

    def __init__(self, location: str) -> None:
        """``location`` names the file, or the schema."""
        self._location = location
        self._places: set[tuple[int, int]] = set()

    @property
    def count(self) -> int:
        """How many damaged places were met."""
        return len(self._places)

    def found(self, place: LogPlace, offset: int, problem: str) -> CorruptMessageError:
        """Log damage if it is new, and return the error for the caller that reads there."""
        topic, partition = place.topic, place.partition.partition
        if (place.log_id, offset) not in self._places:
            if len(self._places) < _PLACES_MAX:
                self._places.add((place.log_id, offset))
            log.error(
                "damage found",
                topic=topic,
                partition=partition,
                offset=offset,
                file=self._location,
                problem=problem,
                action="stop this broker, run `semel check`, and follow docs/run/recovery.md",
            )
        return CorruptMessageError(
            f"topic {topic!r}, partition {partition}: damage at offset {offset} in"
            f" {self._location}: {problem}; restore the volume of this broker, or go on behind the"
            " damage: docs/run/recovery.md says how",
            topic=topic,
            partition=str(partition),
            offset=str(offset),
        )
