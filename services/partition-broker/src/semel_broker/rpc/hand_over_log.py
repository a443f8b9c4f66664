"""CopyLog and HandOverLog: what a partition's old leader gives to the new one."""

from collections.abc import Sequence
from functools import partial

from semel.broker.v1 import moves_pb2 as wire
from semel_broker.journal.record_serde import BrokerSerde
from semel_broker.machine import BrokerMachine
from semel_broker.machine.moves import HandedOver, Move
from semel_broker.machine.records import Record
from semel_broker.machine.values import LogPlace
from semel_broker.storage.log_reader import LogReader
from semel_common.ids import TopicPartition
from semel_runtime.journal.contract import StoredBatch
from semel_runtime.moving.transfer_pieces import piece_of
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import INT32_MAX, require_int, require_name

_DEFAULT_MAX_BYTES = 1 << 20
_BATCHES_MAX = 500
"""The new leader writes them in one commit."""


class LogGiver:
    """Answers what is asked of partitions that move away."""

    def __init__(self, runner: Runner[Record], machine: BrokerMachine, logs: LogReader) -> None:
        self._runner = runner
        self._machine = machine
        self._logs = logs
        self._serde = BrokerSerde()
        self._giving: tuple[Move, HandedOver] | None = None
        """The state that is asked for piece by piece."""

    async def copy_log(self, request: wire.CopyLogRequest, _call: Call) -> wire.CopyLogResponse:
        """Read a log as it is stored."""
        move = _move(request)
        from_offset = require_int("from_offset", request.from_offset)
        max_bytes = require_int("max_bytes", request.max_bytes, maximum=INT32_MAX)
        plan = await self._runner.run(partial(self._machine.copy_log, move, from_offset))
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
            gaps=[wire.OffsetRange(start_offset=s, end_offset=e) for s, e in plan.place.gaps],
        )

    async def hand_over_log(
        self, request: wire.HandOverLogRequest, _call: Call
    ) -> wire.HandOverLogResponse:
        """Stop serving a partition, and answer a piece of its state."""
        move = _move(request)
        first = require_int("first_record", request.first_record, maximum=INT32_MAX)
        # A full disk must not keep anybody from leaving.
        await self._runner.run(partial(self._machine.hand_over_log, move), privileged=True)
        state = self._state(move)
        piece = piece_of(state.entities, first, self._serde.encode)
        if first + len(piece) >= len(state.entities):
            self._giving = None
        return wire.HandOverLogResponse(
            records=piece,
            record_count=len(state.entities),
            log_end_offset=state.log_end_offset,
        )

    def _state(self, move: Move) -> HandedOver:
        """Return what was handed over: looked up once for all pieces."""
        if self._giving is None or self._giving[0] != move:
            self._giving = (move, self._machine.handed_over(move))
        return self._giving[1]

    async def _read(
        self, place: LogPlace, offset: int, *, max_bytes: int, upto: int
    ) -> Sequence[StoredBatch]:
        if offset >= upto:
            return ()
        batches = await self._logs.read(place, offset, max_bytes=max_bytes, upto=upto)
        return batches[:_BATCHES_MAX]


def _move(request: wire.CopyLogRequest | wire.HandOverLogRequest) -> Move:
    require_name("topic_id", request.topic_id)
    partition = require_int("partition", request.partition, maximum=INT32_MAX)
    return Move(
        partition=TopicPartition(request.topic_id, partition),
        leader_epoch=require_int("leader_epoch", request.leader_epoch),
        moving_to=require_int("broker_id", request.broker_id, maximum=INT32_MAX),
    )


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
