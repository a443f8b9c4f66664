"""Outcomes of transactions, as they reach the groups of one instance: by marker, or by inquiry."""

from collections.abc import Sequence

from semel_common.errors import SemelError, TransactionCoordinatorFencedError
from semel_common.ids import GroupId
from semel_group.machine.moves import GroupMoves
from semel_group.machine.offsets.offsets_machine import OffsetsMachine
from semel_group.machine.records import Record
from semel_group.machine.values import RefusedMarker, TxnMarker
from semel_runtime.machine import Result
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochCheck
from semel_runtime.participant.inquiry import InquiryAnswer


def write_txn_markers(
    offsets: OffsetsMachine, moves: GroupMoves, markers: Sequence[TxnMarker], *, now_ms: int
) -> Result[tuple[tuple[RefusedMarker, ...], ...], Record]:
    """End transactions; a repeat ends nothing again. Answers, marker by marker, who refused."""
    refused: list[tuple[RefusedMarker, ...]] = []
    records: dict[Record, None] = {}
    coordinators = offsets.coordinator_epochs.check()
    for marker in markers:
        outcome = _write_txn_marker(offsets, moves, marker, coordinators, now_ms)
        refused.append(outcome.response)
        records |= dict.fromkeys(outcome.records)
    return Result(tuple(refused), tuple(records))


def apply_inquiry_answers(
    offsets: OffsetsMachine,
    moves: GroupMoves,
    answers: Sequence[InquiryAnswer[GroupId]],
    *,
    now_ms: int,
) -> Result[tuple[InquiryAnswer[GroupId], ...], Record]:
    """Do as coordinators answered. Answers which answers ended a transaction.

    One that comes from an owner that was deposed since ends nothing: it is asked for again. Nor
    does one for a group that was handed over since.
    """
    ended: list[InquiryAnswer[GroupId]] = []
    records: dict[Record, None] = {}
    coordinators = offsets.coordinator_epochs.check()
    for answer in answers:
        if not moves.is_served(answer.transaction.participant.group_id):
            continue
        try:
            outcome = offsets.apply_inquiry_answer(answer, coordinators, now_ms=now_ms)
        except TransactionCoordinatorFencedError:
            continue
        records |= dict.fromkeys(outcome.records)
        if outcome.response:
            ended.append(answer)
    return Result(tuple(ended), tuple(records))


def _write_txn_marker(
    offsets: OffsetsMachine,
    moves: GroupMoves,
    marker: TxnMarker,
    coordinators: CoordinatorEpochCheck,
    now_ms: int,
) -> Result[tuple[RefusedMarker, ...], Record]:
    """End one transaction in each of its groups."""
    producer_id = marker.transaction.producer_id
    try:
        records: list[Record] = [*coordinators.see(producer_id, marker.coordinator_epoch)]
    except SemelError as error:
        fenced = (RefusedMarker(group_id=each, error=error) for each in marker.group_ids)
        return Result(tuple(fenced))
    refused: list[RefusedMarker] = []
    for group_id in marker.group_ids:
        try:
            moves.check_in_charge(group_id)
        except SemelError as error:
            refused.append(RefusedMarker(group_id=group_id, error=error.as_value()))
            continue
        records += offsets.end_transaction(
            group_id, marker.transaction, marker.result, now_ms=now_ms
        )
    return Result(tuple(refused), records)
