"""What operators do to groups: list, describe, delete."""

import asyncio
from functools import partial
from itertools import islice

import structlog

from semel.group.v1 import group_pb2 as wire
from semel_common.wire import methods
from semel_common.wire.status import to_value
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record
from semel_group.rpc import requests, responses
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.server.pages import Page, check_token, names_after, no_room

log = structlog.get_logger(__name__)

_LIST_PIECE = 500
"""Groups that are looked at before others have their turn."""


class GroupAdminService:
    """Answers operators."""

    def __init__(self, runner: Runner[Record], machine: GroupMachine) -> None:
        """Serve groups of one machine."""
        self._runner = runner
        self._machine = machine

    def register(self, handlers: Handlers) -> None:
        """Add the handlers."""
        handlers.add(methods.LIST_GROUPS, self.list_groups)
        handlers.add(methods.DESCRIBE_GROUPS, self.describe_groups)
        handlers.add(methods.DELETE_OFFSETS, self.delete_offsets)
        handlers.add(methods.DELETE_GROUPS, self.delete_groups)

    async def list_groups(
        self, request: wire.ListGroupsRequest, call: Call
    ) -> wire.ListGroupsResponse:
        """List a page of the groups that are in one of the states asked for, in pieces."""
        del call
        states = requests.group_states(request)
        page, token = Page(request.limit), check_token(request.page_token)
        candidates = await self._runner.run(self._machine.list_candidates)
        names = await names_after(candidates, token)
        response = wire.ListGroupsResponse()
        while piece := list(islice(names, _LIST_PIECE)):
            for listing in await self._runner.run(partial(self._machine.list_groups, piece)):
                if listing.state in states:
                    entry = responses.group_listing(listing)
                    if not page.takes(entry):
                        response.next_page_token = token
                        return response
                    response.groups.append(entry)
                token = listing.group_id
            await asyncio.sleep(0)
        return response

    async def describe_groups(
        self, request: wire.DescribeGroupsRequest, call: Call
    ) -> wire.DescribeGroupsResponse:
        """Describe one group after the other, or say why not; as many as an answer has room for."""
        del call
        page, topics = Page(0), self._machine.topics
        response = wire.DescribeGroupsResponse()
        for group_id in requests.group_ids(request):
            describe = partial(self._machine.describe_groups, (group_id,))
            (described,) = await self._runner.run(describe)
            entry = responses.group_description(group_id, described, topics)
            if not page.takes(entry):
                refused = no_room(f"group {group_id!r}")
                entry = responses.group_description(group_id, refused, topics)
            response.groups.append(entry)
            await asyncio.sleep(0)
        return response

    async def delete_offsets(
        self, request: wire.DeleteOffsetsRequest, call: Call
    ) -> wire.DeleteOffsetsResponse:
        """Forget offsets, each for itself."""
        del call
        group_id = requests.group_id(request.group_id)
        asked = requests.named_partitions(request.topics)
        refused = await self._runner.run(partial(self._machine.delete_offsets, group_id, asked))
        log.info("offsets deleted", group_id=group_id, partitions=len(asked) - len(refused))
        return wire.DeleteOffsetsResponse(errors=map(responses.refused_offset, refused))

    async def delete_groups(
        self, request: wire.DeleteGroupsRequest, call: Call
    ) -> wire.DeleteGroupsResponse:
        """Forget groups, each for itself."""
        del call
        group_ids = requests.group_ids(request)
        refused = await self._runner.run(partial(self._machine.delete_groups, group_ids))
        response = wire.DeleteGroupsResponse()
        for group_id, error in zip(group_ids, refused, strict=True):
            response.groups.add(group_id=group_id, error=None if error is None else to_value(error))
            if error is None:
                log.info("group deleted", group_id=group_id)
        return response
