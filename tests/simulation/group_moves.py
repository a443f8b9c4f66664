"""Invariants of moves of groups: the new leader has the final state of the old one.

The records about groups form one story over all journals, because no two group coordinators ever
serve a group. Only the copy that a new leader stores is no part of it: it is compared.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from semel_common.ids import partition_for_id
from semel_group.machine.records import (
    GroupsForgotten,
    GroupsHandedOver,
    GroupsServed,
    GroupsTakenOver,
)
from semel_local.layout import ServiceName
from simulation.durable import Durable

GROUP_PARTITIONS = 5
"""As many as the simulated cluster has."""

Check = Callable[[bool, str], None]


class GroupMovesWatch:
    """The watch over the moves of all groups."""

    def __init__(self) -> None:
        self._facts = Durable()
        self._copies: dict[str, dict[int, int]] = {}
        """Partitions that move to each service, with the leader epoch that they leave."""
        self._known: dict[tuple[int, int], object] = {}
        """The state of the groups of a partition when it was handed over, by leader epoch."""
        self.completed = 0

    def durable(self) -> Durable:
        """Return the store of group coordinators' facts: all of them share the facts of groups."""
        facts = self._facts
        return Durable(
            open=facts.open,
            ended=facts.ended,
            group_epochs=facts.group_epochs,
            pending=facts.pending,
            held=facts.held,
            fences=facts.fences,
            sequences=facts.sequences,
        )

    def is_copy(self, name: ServiceName, record: object) -> bool:
        """See a durable record; returns whether it only repeats a record of the old leader."""
        copies = self._copies.setdefault(str(name), {})
        match record:
            case GroupsTakenOver():
                copies[record.partition] = record.leader_epoch
            case GroupsServed() | GroupsForgotten():
                copies.pop(record.partition, None)
            case _:
                group_id = getattr(record, "group_id", None)
                return group_id is not None and _partition_of(group_id) in copies
        return False

    def replayed(
        self,
        name: ServiceName,
        machine: Any,  # noqa: ANN401 - of three kinds
        record: object,
        check: Check,
    ) -> None:
        """See a record as soon as it is replayed."""
        match record:
            case GroupsHandedOver():
                known = _known_of(machine, record.partition)
                self._known[record.partition, record.leader_epoch] = known
            case GroupsServed():
                epoch = self._copies.get(str(name), {}).get(record.partition)
                if epoch is not None:
                    known = _known_of(machine, record.partition)
                    before = self._known.get((record.partition, epoch))
                    check(known == before, f"{name} serves {known}, but was given {before}")
                    self.completed += 1
            case _:
                pass


def _partition_of(group_id: str) -> int:
    return partition_for_id(group_id, GROUP_PARTITIONS)


def _known_of(machine: Any, partition: int) -> object:  # noqa: ANN401 - of three kinds
    """Return the state of the groups of a partition, without places and idle times."""
    return {
        group_id: (
            _members(machine.membership.groups.get(group_id)),
            _offsets(machine.offsets.group(group_id)),
        )
        for group_id in machine.moves.groups_in(partition)
    }


def _members(group: Any) -> object:  # noqa: ANN401 - of the group coordinator
    return group and (group.group, group.members, group.holders)


def _offsets(group: Any) -> object:  # noqa: ANN401 - of the group coordinator
    places = [(at, 0, name) for name, (at, _) in group.committed.items()]
    for held in group.pending.values():
        places += [
            (at, 1, offset.partition) for at, commit in held.commits for offset in commit.offsets
        ]
    return (
        {name: each for name, (_, each) in group.committed.items()},
        {name: [each for _, each in held.commits] for name, held in group.pending.items()},
        {name: replace(each, last_ended_ms=0) for name, (_, each) in group.producers.items()},
        [place[1:] for place in sorted(places)],
    )
