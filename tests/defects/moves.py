"""Defects of moves: at the old leader, at the new one, and at the controller between them."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from defects.defect import collector
from semel.broker.v1.moves_pb2 import CopyLogResponse
from semel_broker.loops.take_over import LogTaker
from semel_broker.machine import moves
from semel_broker.machine.log.partition_log import PartitionLog
from semel_broker.machine.log_directory import LogDirectory
from semel_broker.machine.moves import LogMoves
from semel_broker.machine.records import (
    AbortedTransaction,
    LogState,
    OpenTransaction,
    ProducerState,
    Record,
)
from semel_coordinator.controller.machine import controller_machine, reassignment
from semel_coordinator.controller.machine.state import ControllerState
from semel_runtime.cluster.metadata_image import PartitionLeader

DEFECTS, defect = collector()


def _left_out(patch: pytest.MonkeyPatch, kind: type[Record]) -> None:
    known = moves._known

    def without(log: PartitionLog) -> Iterator[Record]:
        return (each for each in known(log) if not isinstance(each, kind))

    patch.setattr(moves, "_known", without)


@defect("moves-without-producers", "the new leader knows no producer that the old one knew")
def _producers(patch: pytest.MonkeyPatch) -> None:
    _left_out(patch, ProducerState)


@defect("moves-without-open", "the new leader knows nothing of transactions that are open")
def _open(patch: pytest.MonkeyPatch) -> None:
    _left_out(patch, OpenTransaction)


@defect("moves-without-aborted", "the new leader shows what was aborted at the old one")
def _aborted(patch: pytest.MonkeyPatch) -> None:
    _left_out(patch, AbortedTransaction)


@defect("handed-over-and-served", "the old leader goes on when it has handed a log over")
def _served(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LogDirectory, "is_led", LogDirectory.is_own)


@defect("taken-over-unfinished", "records between copy and hand-over stay behind")
def _unfinished(patch: pytest.MonkeyPatch) -> None:
    asked = LogTaker._piece

    async def none_left(self: LogTaker, leader: Any, copy: Any) -> CopyLogResponse:
        piece = await asked(self, leader, copy)
        if not piece.handed_over:
            return piece
        end = copy.log_end_offset
        return CopyLogResponse(next_offset=end, log_end_offset=end)

    patch.setattr(LogTaker, "_piece", none_left)
    patch.setattr(moves, "_check_whole", lambda _log, _state: None)


@defect("given-up-keeps-epoch", "a move that is given up leaves the leader epoch as it was")
def _keeps_epoch(patch: pytest.MonkeyPatch) -> None:
    retargeted = reassignment.retargeted

    def same_epoch(leader: PartitionLeader, broker_id: int | None) -> PartitionLeader:
        return replace(retargeted(leader, broker_id), leader_epoch=leader.leader_epoch)

    patch.setattr(reassignment, "retargeted", same_epoch)


@defect("completed-when-given-up", "the controller lets a broker lead whose move was given up")
def _completed(patch: pytest.MonkeyPatch) -> None:
    completed = reassignment.completed

    def anyhow(
        state: ControllerState, done: reassignment.Completion
    ) -> list[reassignment.MoveRecord]:
        if done.topic_id not in state.topics:
            return completed(state, done)
        changes = reassignment.Changes(state)
        after = PartitionLeader(done.broker_id, done.leader_epoch + 1)
        changes.put(state.topics[done.topic_id].topic, done.partition, after)
        return changes.records()

    patch.setattr(controller_machine, "completed", anyhow)


@defect("moves-forget-the-start", "the new leader serves again what was deleted at the old one")
def _start(patch: pytest.MonkeyPatch) -> None:
    known = LogMoves.handed_over

    def from_the_start(*args: Any) -> Any:
        state = known(*args)
        first, *others = state.entities
        assert isinstance(first, LogState)
        return replace(state, entities=(replace(first, log_start_offset=0), *others))

    patch.setattr(LogMoves, "handed_over", from_the_start)
