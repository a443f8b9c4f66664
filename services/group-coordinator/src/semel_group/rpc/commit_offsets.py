"""CommitOffsets: offsets of a group, outside of a transaction."""

from functools import partial

from semel.group.v1 import group_pb2 as wire
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record
from semel_group.rpc.committers import committer
from semel_group.rpc.new_offsets import new_offsets
from semel_group.rpc.refused_offsets import refused_offset
from semel_runtime.clock import Clock
from semel_runtime.journal.contract import Reserve
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call


class OffsetCommitter:
    """Answers CommitOffsets."""

    def __init__(self, runner: Runner[Record], machine: GroupMachine, clock: Clock) -> None:
        self._runner = runner
        self._machine = machine
        self._clock = clock

    async def commit_offsets(
        self, request: wire.CommitOffsetsRequest, call: Call
    ) -> wire.CommitOffsetsResponse:
        """Commit each offset for itself, at once; errors are values."""
        del call
        decide = partial(
            self._machine.committed_offsets.commit_offsets,
            committer(request),
            new_offsets(request.topics),
            now_ms=self._clock.now_ms(),
        )
        refused = await self._runner.run(decide, may_use=Reserve.HALF)
        return wire.CommitOffsetsResponse(errors=map(refused_offset, refused))
