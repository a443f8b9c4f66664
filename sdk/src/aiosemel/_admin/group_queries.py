"""The admin client's questions about groups: which there are, their members and offsets."""

from collections.abc import Awaitable, Iterable
from functools import partial
from itertools import chain

from aiosemel._admin.admin_part import AdminPart, numbers_of
from aiosemel._answers.refusals import raise_refusal
from aiosemel._cluster import from_wire
from aiosemel._cluster.everyone import ask_everyone
from aiosemel._cluster.metadata import GROUP_COORDINATOR
from aiosemel._cluster.pages import pages
from aiosemel._cluster.routes import Route
from aiosemel._consumer.group.committed_offsets import GroupOffsets
from aiosemel._shared.value_checks import check_group_id
from aiosemel.types.descriptions import GroupDescription, GroupListing, GroupState
from aiosemel.types.offsets import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from semel.group.v1 import group_pb2 as group
from semel_common.wire import methods

_STATES = {state: number for number, state in from_wire.GROUP_STATES.items()}


class GroupQueries(AdminPart):
    """Lists and describes groups."""

    async def list_groups(self, *, states: Iterable[GroupState] = ()) -> tuple[GroupListing, ...]:
        """Return the groups of all group coordinators, by id; ``states`` empty: in any state.

        Raises IncompleteListError, which has the groups of the others, if some do not answer.
        """
        wanted = numbers_of(states, _STATES)
        deadline = self._deadline()

        def ask(route: Route, token: str) -> Awaitable[group.ListGroupsResponse]:
            request = group.ListGroupsRequest(states=wanted, page_token=token)
            return self._cluster.call(route, methods.LIST_GROUPS, request, deadline=deadline)

        async def listed(route: Route) -> list[GroupListing]:
            found: list[GroupListing] = []
            async for page in pages(partial(ask, route)):
                found.extend(map(from_wire.group_listing, page.groups))
            return found

        answers = await ask_everyone(self._cluster, GROUP_COORDINATOR, listed, deadline)
        found = chain.from_iterable(answers.given)
        return answers.whole(tuple(sorted(found, key=lambda listing: listing.group_id)))

    async def describe_group(self, group_id: str) -> GroupDescription:
        """Return one group; raises GroupIdNotFoundError."""
        response = await self._cluster.call(
            self._cluster.group_coordinator_of(group_id),
            methods.DESCRIBE_GROUPS,
            group.DescribeGroupsRequest(group_ids=[group_id]),
            deadline=self._deadline(),
            check=lambda answer: raise_refusal(answer.groups),
        )
        return from_wire.whole_group(response.groups[0])

    async def list_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[tuple[str, int]] | None = None,
        *,
        require_stable: bool = False,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what a group has committed; of partitions by name, None where there is nothing.

        Without ``partitions``: wherever it has committed anything, which is nowhere for a group
        that is not there. ``require_stable`` waits for open transactions that may still change an
        offset, and raises UnstableOffsetCommitError when it took too long. Raises
        InvalidGroupIdError, UnknownTopicOrPartitionError.
        """
        check_group_id(group_id)
        no_member = ConsumerGroupMetadata(group_id=group_id)
        offsets = GroupOffsets(self._cluster, lambda: no_member, require_stable=require_stable)
        named = None if partitions is None else [(TopicPartition.named(p), "") for p in partitions]
        return await offsets.settled(named, self._deadline())
