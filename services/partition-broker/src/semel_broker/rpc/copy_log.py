"""CopyLog: the new leader of a partition copies the log from the old one."""

from collections.abc import Sequence
from functools import partial

from semel.broker.v1 import moves_pb2 as wire
from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import Record
from semel_broker.machine.values import LogPlace
from semel_broker.rpc.log_moves import log_move
from semel_broker.storage.log_reader import LogReader
from semel_runtime.journal.contract import StoredBatch
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import INT32_MAX, require_int

_DEFAULT_MAX_BYTES = 1 << 20
_BATCHES_MAX = 500
"""The new leader writes them in one commit."""


class LogCopier:
    """Answers CopyLog."""

    def __init__(self, runner: Runner[Record], machine: BrokerMachine, logs: LogReader) -> None:
        self._runner = runner
        self._machine = machine
        self._logs = logs

    async def copy_log(self, request: wire.CopyLogRequest, call: Call) -> wire.CopyLogResponse:
        """Read a log as it is stored."""
        del call
        move = log_move(request)
        from_offset = require_int("from_offset", request.from_offset)
        max_bytes = require_int("max_bytes", request.max_bytes, maximum=INT32_MAX)
        plan = await self._runner.run(partial(self._machine.moves.copy_log, move, from_offset))
        batches = await self._read(
            plan.place,
            plan.from_offset,
            max_bytes=min(max_bytes or _DEFAULT_MAX_BYTES, _DEFAULT_MAX_BYTES),
            upto=plan.upto,
        )
        return wire.CopyLogResponse(
            batches=map(_stored, batches),
            next_offset=_end(batches[-1]) if batches else plan.upto,
            log_end_offset=plan.upto,
            handed_over=plan.handed_over,
            first_offset=plan.from_offset,
            gaps=[
                wire.OffsetRange(start_offset=start, end_offset=end)
                for start, end in plan.place.gaps
            ],
        )

    async def _read(
        self, place: LogPlace, offset: int, *, max_bytes: int, upto: int
    ) -> Sequence[StoredBatch]:
        if offset >= upto:
            return ()
        batches = await self._logs.read(place, offset, max_bytes=max_bytes, upto=upto)
        return batches[:_BATCHES_MAX]


def _stored(batch: StoredBatch) -> wire.StoredBatch:
    return wire.StoredBatch(
        base_offset=batch.base_offset,
        record_count=batch.record_count,
        max_timestamp_ms=batch.max_timestamp_ms,
        header=batch.header,
        payload=batch.payload,
    )


def _end(batch: StoredBatch) -> int:
    return batch.base_offset + batch.record_count
