"""HandOverLog: a partition's old leader stops serving it, and gives its state to the new one."""

from functools import partial

from semel.broker.v1 import moves_pb2 as wire
from semel_broker.journal.record_serde import BrokerSerde
from semel_broker.machine import BrokerMachine
from semel_broker.machine.moves import HandedOver, Move
from semel_broker.machine.records import Record
from semel_broker.rpc.log_moves import log_move
from semel_runtime.moving.transfer_pieces import piece_of
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import INT32_MAX, require_int


class LogGiver:
    """Answers HandOverLog."""

    def __init__(self, runner: Runner[Record], machine: BrokerMachine) -> None:
        self._runner = runner
        self._machine = machine
        self._serde = BrokerSerde()
        self._giving: tuple[Move, HandedOver] | None = None
        """The state that is asked for piece by piece."""

    async def hand_over_log(
        self, request: wire.HandOverLogRequest, call: Call
    ) -> wire.HandOverLogResponse:
        """Stop serving a partition, and answer a piece of its state."""
        del call
        move = log_move(request)
        first = require_int("first_record", request.first_record, maximum=INT32_MAX)
        # A partition leaves a full disk, too.
        await self._runner.run(partial(self._machine.moves.hand_over_log, move), privileged=True)
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
            self._giving = (move, self._machine.moves.handed_over(move))
        return self._giving[1]
