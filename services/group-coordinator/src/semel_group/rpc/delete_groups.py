"""DeleteGroups: an operator removes groups with their offsets."""

from functools import partial

import structlog

from semel.group.v1 import group_pb2 as wire
from semel_common.wire.status import to_value
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record
from semel_group.rpc.group_ids import group_ids
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call

log = structlog.get_logger(__name__)


class GroupDeleter:
    """Answers DeleteGroups."""

    def __init__(self, runner: Runner[Record], machine: GroupMachine) -> None:
        self._runner = runner
        self._machine = machine

    async def delete_groups(
        self, request: wire.DeleteGroupsRequest, call: Call
    ) -> wire.DeleteGroupsResponse:
        """Forget each group for itself; errors are values."""
        del call
        ids = group_ids(request.group_ids)
        refused = await self._runner.run(partial(self._machine.deletion.delete_groups, ids))
        response = wire.DeleteGroupsResponse()
        for group_id, error in zip(ids, refused, strict=True):
            response.groups.add(group_id=group_id, error=None if error is None else to_value(error))
            if error is None:
                log.info("group deleted", group_id=group_id)
        return response
