"""What operators do to groups: list, describe, delete."""

from functools import partial

import structlog

from semel.group.v1 import group_pb2 as wire
from semel_common.wire import methods
from semel_common.wire.status import to_value
from semel_group import requests, responses
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call, Handlers

log = structlog.get_logger(__name__)


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
        """List the groups of this instance that are in one of the states asked for."""
        del call
        states = requests.group_states(request)
        listings = await self._runner.run(self._machine.list_groups)
        return wire.ListGroupsResponse(
            groups=[responses.group_listing(each) for each in listings if each.state in states]
        )

    async def describe_groups(
        self, request: wire.DescribeGroupsRequest, call: Call
    ) -> wire.DescribeGroupsResponse:
        """Describe each group, or say why not."""
        del call
        group_ids = requests.group_ids(request)
        descriptions = await self._runner.run(partial(self._machine.describe_groups, group_ids))
        topics = self._machine.topics
        return wire.DescribeGroupsResponse(
            groups=[
                responses.group_description(group_id, description, topics)
                for group_id, description in zip(group_ids, descriptions, strict=True)
            ]
        )

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
