"""The groups that this instance serves, as callers find them: by id, in lists, in descriptions.

A group is there if it has members or offsets, or had members and is not deleted.
"""

from collections.abc import Iterable, Iterator, Sequence

from semel_common.errors import GroupIdNotFoundError, SemelError
from semel_common.ids import TopicPartition
from semel_group.machine.gauges import GroupStanding, standing
from semel_group.machine.group_descriptions import described, listed
from semel_group.machine.membership.membership_machine import MembershipMachine
from semel_group.machine.moves import GroupMoves
from semel_group.machine.offsets.offsets_machine import OffsetsMachine
from semel_group.machine.records import Record
from semel_group.machine.values import GroupDescription, GroupListing
from semel_runtime.machine import Result


class Groups:
    """All groups with members or offsets."""

    def __init__(
        self, membership: MembershipMachine, offsets: OffsetsMachine, moves: GroupMoves
    ) -> None:
        """Answer from the state of these machines."""
        self._membership = membership
        self._offsets = offsets
        self._moves = moves

    def exists(self, group_id: str) -> bool:
        """Whether a group is there, served or not."""
        return group_id in self._membership.groups or not self._offsets.group(group_id).is_empty

    def check_exists(self, group_id: str) -> None:
        """Raise GroupIdNotFoundError unless a group is there."""
        if not self.exists(group_id):
            raise GroupIdNotFoundError(f"there is no group {group_id!r}")

    def group_ids(self) -> list[str]:
        """Return all groups of this instance."""
        return sorted(self._moves.served(self._known()))

    # -- answers to operators --------------------------------------------------------------------

    def list_candidates(self) -> Result[Sequence[str], Record]:
        """Return the groups to be given to ``list_groups``, in pieces, in no order.

        A group that is gone may be among them: ``list_groups`` leaves it out.
        """
        members = self._membership.groups
        others = self._offsets.known_group_ids()
        return Result([*members, *(each for each in others if each not in members)])

    def list_groups(self, group_ids: Iterable[str]) -> Result[tuple[GroupListing, ...], Record]:
        """List the groups that are there and served here, in the order given."""
        groups = self._membership.groups
        served = filter(self.exists, self._moves.served(group_ids))
        return Result(tuple(listed(group_id, groups.get(group_id)) for group_id in served))

    def describe_groups(
        self, group_ids: Sequence[str]
    ) -> Result[tuple[GroupDescription | SemelError, ...], Record]:
        """Describe each group, in the order given, or return the reason why not."""
        return Result(tuple(map(self._described, group_ids)))

    def standing(self) -> Iterator[GroupStanding]:
        """Yield how groups stand now, durable or not: for people, not for clients."""
        return standing(self.group_ids(), self._membership, self._offsets)

    def committed_offsets(self, group_id: str) -> Iterator[tuple[TopicPartition, int]]:
        """Yield where a group stands now, likewise."""
        for partition, (_, committed) in self._offsets.group(group_id).committed.items():
            yield partition, committed.committed_offset

    def _known(self) -> set[str]:
        return {*self._membership.groups, *self._offsets.group_ids()}

    def _described(self, group_id: str) -> GroupDescription | SemelError:
        try:
            self._moves.check_in_charge(group_id)
            self.check_exists(group_id)
        except SemelError as error:
            return error.as_value()
        group = self._membership.groups.get(group_id)
        return described(group_id, group, self._offsets.group(group_id))
