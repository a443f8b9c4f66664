"""DeleteOffsets: an operator removes committed offsets of a group."""

from functools import partial

import structlog

from semel.group.v1 import group_pb2 as wire
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record
from semel_group.rpc.group_ids import group_id
from semel_group.rpc.partition_names import named_partitions
from semel_group.rpc.refused_offsets import refused_offset
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call

log = structlog.get_logger(__name__)


class OffsetDeleter:
    """Answers DeleteOffsets."""

    def __init__(self, runner: Runner[Record], machine: GroupMachine) -> None:
        self._runner = runner
        self._machine = machine

    async def delete_offsets(
        self, request: wire.DeleteOffsetsRequest, call: Call
    ) -> wire.DeleteOffsetsResponse:
        """Forget each offset for itself; errors are values."""
        del call
        group = group_id(request.group_id)
        asked = named_partitions(request.topics)
        refused = await self._runner.run(
            partial(self._machine.deletion.delete_offsets, group, asked)
        )
        log.info("offsets deleted", group_id=group, partitions=len(asked) - len(refused))
        return wire.DeleteOffsetsResponse(errors=map(refused_offset, refused))
