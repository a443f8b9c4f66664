"""ListGroups: a page of the groups that are in some states."""

from functools import partial
from itertools import islice

from semel.group.v1 import group_pb2 as wire
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record
from semel_group.machine.values import GroupListing, GroupState
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count, require_known
from semel_runtime.server.limits.list_turns import pause
from semel_runtime.server.pages import Page, PageTokens, names_after

_TOKENS = PageTokens("ListGroups")
_LIST_PIECE = 200
"""Groups that a list looks at before other calls go on: two milliseconds."""


class GroupLister:
    """Answers ListGroups."""

    def __init__(self, runner: Runner[Record], machine: GroupMachine) -> None:
        self._runner = runner
        self._machine = machine

    async def list_groups(
        self, request: wire.ListGroupsRequest, call: Call
    ) -> wire.ListGroupsResponse:
        """List a page of the groups that are in one of the states asked for, in pieces."""
        del call
        states = group_states(request)
        page, looked_at = Page(request.limit), _TOKENS.key(request.page_token) or ""
        candidates = await self._runner.run(self._machine.groups.list_candidates)
        names = await names_after(candidates, looked_at)
        response = wire.ListGroupsResponse()
        while piece := list(islice(names, _LIST_PIECE)):
            for listing in await self._runner.run(partial(self._machine.groups.list_groups, piece)):
                if listing.state in states:
                    entry = _group_listing(listing)
                    if not page.takes(entry):
                        response.next_page_token = _TOKENS.after(looked_at)
                        return response
                    response.groups.append(entry)
                looked_at = listing.group_id
            await pause()
        return response


def group_states(request: wire.ListGroupsRequest) -> frozenset[GroupState]:
    """Return the states that a request names; all, if it names none."""
    known = tuple(GroupState)
    require_count("states", request.states, maximum=len(known))
    return frozenset(
        GroupState(require_known("states", state, known)) for state in request.states
    ) or frozenset(known)


def _group_listing(listing: GroupListing) -> wire.GroupListing:
    return wire.GroupListing(
        group_id=listing.group_id,
        state=listing.state.value,  # type: ignore[arg-type]  # equal numbers
        member_count=listing.member_count,
    )
