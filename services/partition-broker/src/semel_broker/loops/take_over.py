"""Takes over the partitions that move here: copies their logs, one after the other.

What a move is, is in ``machine/moves.py``. Each step is durable here before the next one is asked
for, so a broker that starts again goes on where its copy ends.
"""

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from semel.broker.v1 import moves_pb2 as wire
from semel_broker.journal.record_serde import BrokerSerde
from semel_broker.machine import BrokerMachine
from semel_broker.machine.log.gaps import first_break, is_allowed
from semel_broker.machine.moves import Copy
from semel_broker.machine.records import LogState, OffsetRange, Record
from semel_broker.storage.batch_integrity import what_is_wrong
from semel_common.errors import CorruptMessageError
from semel_common.wire.connection import Connection
from semel_common.wire.methods import COPY_LOG, HAND_OVER_LOG
from semel_runtime.cluster.metadata_image import ServiceRole
from semel_runtime.journal.contract import Reserve, StoredBatch
from semel_runtime.moving.take_over_loop import TakeOvers
from semel_runtime.runner import Runner


class LogTaker:
    """Takes over the partitions that move to one broker."""

    def __init__(
        self, runner: Runner[Record], machine: BrokerMachine, take_overs: TakeOvers
    ) -> None:
        self._runner = runner
        self._machine = machine
        self._take_overs = take_overs
        self._serde = BrokerSerde()

    async def run(self) -> None:
        """Take over what moves here, until cancelled."""
        await self._take_overs.run(self.take_all)

    def on_durable(self, records: Sequence[Record]) -> None:
        """Note that something moves here from now on."""
        if any(isinstance(record, LogState) for record in records):
            self._take_overs.look()

    async def take_all(self) -> bool:
        """Try each move once; answers whether all came to their ends."""
        done = [
            await self._take_overs.attempt(
                copy.move,
                partial(self._take, copy),
                topic=copy.topic,
                partition=copy.move.partition.partition,
                leader=copy.leader_id,
            )
            for copy in await self._runner.run(self._machine.moves.copies)
        ]
        return all(done)

    async def _take(self, copy: Copy) -> None:
        if not copy.whole:
            await self._take_over(copy)
        await self._take_overs.complete(
            copy.move.partition.topic_id,
            copy.move.partition.partition,
            leader_epoch=copy.move.leader_epoch,
            instance_id=copy.move.moving_to,
        )

    async def _take_over(self, copy: Copy) -> None:
        leader = self._take_overs.connect(ServiceRole.BROKER, copy.leader_id)
        copy = await self._copy(leader, copy)
        first = await self._hand_over(leader, copy, 0)
        copy = await self._copy(leader, copy)  # The rest, to which no producer adds any more.
        await self._know(leader, copy, first)

    # -- steps -----------------------------------------------------------------------------------

    async def _copy(self, leader: Connection, copy: Copy) -> Copy:
        """Copy a log to its end; returns how far the copy is then.

        It goes in rounds: each copies the batches written during the one before. If as much was
        written as was copied, the rounds would not end, and this round is the last one.
        """
        begin, end = copy.log_end_offset, None
        while True:
            piece = await self._piece(leader, copy)
            if piece.next_offset > copy.log_end_offset:
                await self._store(copy, piece)
                copy = replace(copy, log_end_offset=piece.next_offset)
            end = piece.log_end_offset if end is None else end
            left = piece.log_end_offset - copy.log_end_offset
            if left <= 0:
                return copy
            if copy.log_end_offset >= end:
                if left >= copy.log_end_offset - begin:
                    return copy
                begin, end = copy.log_end_offset, piece.log_end_offset

    async def _piece(self, leader: Connection, copy: Copy) -> wire.CopyLogResponse:
        request = wire.CopyLogRequest(
            topic_id=copy.move.partition.topic_id,
            partition=copy.move.partition.partition,
            leader_epoch=copy.move.leader_epoch,
            broker_id=copy.move.moving_to,
            from_offset=copy.log_end_offset,
        )
        timeout_ms = self._take_overs.request_timeout_ms
        return await leader.call(COPY_LOG, request, timeout_ms=timeout_ms)

    async def _store(self, copy: Copy, piece: wire.CopyLogResponse) -> None:
        batches = _placed(copy, piece)
        _check(copy, piece, batches)
        copied = partial(self._machine.moves.log_copied, copy, batches, piece.next_offset)
        # Once the log is handed over, a full disk must not keep it from being served.
        may_use = Reserve.ALL if piece.handed_over else Reserve.NONE
        await self._runner.run(copied, privileged=piece.handed_over, may_use=may_use)

    async def _hand_over(
        self, leader: Connection, copy: Copy, first_record: int
    ) -> wire.HandOverLogResponse:
        request = wire.HandOverLogRequest(
            topic_id=copy.move.partition.topic_id,
            partition=copy.move.partition.partition,
            leader_epoch=copy.move.leader_epoch,
            broker_id=copy.move.moving_to,
            first_record=first_record,
        )
        timeout_ms = self._take_overs.request_timeout_ms
        return await leader.call(HAND_OVER_LOG, request, timeout_ms=timeout_ms)

    async def _know(self, leader: Connection, copy: Copy, piece: wire.HandOverLogResponse) -> None:
        """Take over what the leader has known beside the batches."""
        known = 0
        while True:
            entities = [self._serde.decode(record) for record in piece.records]
            known += len(entities)
            whole = known >= piece.record_count
            now_ms = self._take_overs.now_ms()
            know = partial(
                self._machine.moves.log_taken_over, copy, entities, whole=whole, now_ms=now_ms
            )
            await self._runner.run(know, privileged=True)  # As the rest of the log.
            if whole:
                return
            piece = await self._hand_over(leader, copy, known)
            if not piece.records:
                raise CorruptMessageError(
                    f"the state has no record {known} of {piece.record_count}"
                )


def _placed(copy: Copy, piece: wire.CopyLogResponse) -> list[StoredBatch]:
    """Return the batches of a piece, as they are stored here."""
    return [
        StoredBatch(
            partition=copy.log_id,
            base_offset=batch.base_offset,
            record_count=batch.record_count,
            max_timestamp_ms=batch.max_timestamp_ms,
            header=batch.header,
            payload=batch.payload,
        )
        for batch in piece.batches
    ]


def _check(copy: Copy, piece: wire.CopyLogResponse, batches: Sequence[StoredBatch]) -> None:
    """Check that a piece is sound, and has all that the leader's log has there.

    A leader of an earlier release does not say where its log may have gaps. Raises
    CorruptMessageError.
    """
    name = f"topic {copy.topic!r}, partition {copy.move.partition.partition}: the copy"
    for batch in batches:
        problem = what_is_wrong(batch, copy.log_id)
        if problem is not None:
            raise CorruptMessageError(f"{name} of the batch at {batch.base_offset} {problem}")
    if not piece.HasField("first_offset"):
        return
    gaps = tuple(OffsetRange(gap.start_offset, gap.end_offset) for gap in piece.gaps)
    number = first_break(gaps, piece.first_offset, batches)
    if number is not None:
        raise CorruptMessageError(f"{name} lacks batches before {batches[number].base_offset}")
    end = batches[-1].base_offset + batches[-1].record_count if batches else piece.first_offset
    if end < piece.next_offset and not is_allowed(gaps, end, piece.next_offset):
        raise CorruptMessageError(f"{name} lacks batches before {piece.next_offset}")
