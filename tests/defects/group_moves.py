"""Defects of moves of groups: at the old leader, and in the state that it hands over."""

from collections.abc import Sequence

import pytest

from defects.defect import collector
from semel_group.machine import moves
from semel_group.machine.membership.membership_machine import MembershipMachine
from semel_group.machine.moves import GroupMoves
from semel_group.machine.offsets.offsets_machine import OffsetsMachine
from semel_group.machine.records import (
    GroupsHandedOver,
    Member,
    MoveRecord,
    ProducerState,
    Record,
    TxnOffsetsCommitted,
)

DEFECTS, defect = collector()


def _left_out(patch: pytest.MonkeyPatch, kind: type[Record]) -> None:
    known = moves.known_of

    def without(
        group_ids: Sequence[str], membership: MembershipMachine, offsets: OffsetsMachine
    ) -> tuple[Record, ...]:
        every = known(group_ids, membership, offsets)
        return tuple(each for each in every if not isinstance(each, kind))

    patch.setattr(moves, "known_of", without)


@defect("groups-move-without-fences", "the new leader of a group knows no producer")
def _fences(patch: pytest.MonkeyPatch) -> None:
    _left_out(patch, ProducerState)


@defect("groups-move-without-pending", "what transactions hold for a group stays behind")
def _pending(patch: pytest.MonkeyPatch) -> None:
    _left_out(patch, TxnOffsetsCommitted)


@defect("groups-move-without-members", "the new leader of a group knows no member")
def _members(patch: pytest.MonkeyPatch) -> None:
    _left_out(patch, Member)


@defect("groups-move-in-any-order", "which position is the later one is lost in a move")
def _order(patch: pytest.MonkeyPatch) -> None:
    place = moves._place
    patch.setattr(moves, "_place", lambda offset, record: place(-offset, record))


@defect("groups-handed-over-and-served", "the old leader of a group goes on after its hand-over")
def _served(patch: pytest.MonkeyPatch) -> None:
    replay = GroupMoves.replay

    def forgetful(self: GroupMoves, offset: int, record: MoveRecord) -> None:
        if not isinstance(record, GroupsHandedOver):
            replay(self, offset, record)

    patch.setattr(GroupMoves, "replay", forgetful)
