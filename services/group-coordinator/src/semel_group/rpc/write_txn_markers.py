"""WriteTxnMarkers: a transaction coordinator ends transactions in groups."""

from collections.abc import Sequence
from functools import partial

from msgspec import structs

from semel.common.v1 import participants_pb2 as wire
from semel_common.errors import InvalidRequestError
from semel_common.wire.messages.request_bounds import GROUPS_MAX, MARKERS_MAX
from semel_common.wire.status import to_value
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record
from semel_group.machine.values import RefusedMarker, TransactionResult, TxnMarker
from semel_group.rpc.group_ids import group_id
from semel_group.rpc.transactions import transaction
from semel_runtime.clock import Clock
from semel_runtime.machine import Result
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count, require_int, require_known


class MarkerWriter:
    """Answers WriteTxnMarkers."""

    def __init__(self, runner: Runner[Record], machine: GroupMachine, clock: Clock) -> None:
        self._runner = runner
        self._machine = machine
        self._clock = clock

    async def write_txn_markers(
        self, request: wire.WriteTxnMarkersRequest, call: Call
    ) -> wire.WriteTxnMarkersResponse:
        """End transactions here; if no call waits for it behind the coordinator, it has time."""
        del call
        decide = partial(
            self._machine.transactions.write_txn_markers,
            request.cluster_id,
            txn_markers(request),
            now_ms=self._clock.now_ms(),
        )

        def decide_patiently() -> Result[tuple[tuple[RefusedMarker, ...], ...], Record]:
            return structs.replace(decide(), patient=not request.awaited)

        refused = await self._runner.run(decide_patiently, privileged=True)
        return wire.WriteTxnMarkersResponse(results=map(_marker_result, request.markers, refused))


def txn_markers(request: wire.WriteTxnMarkersRequest) -> list[TxnMarker]:
    """Return the markers of a request for groups."""
    require_count("markers", request.markers, maximum=MARKERS_MAX)
    return [_txn_marker(marker) for marker in request.markers]


def _txn_marker(marker: wire.TxnMarker) -> TxnMarker:
    result = require_known("markers.result", marker.result, tuple(TransactionResult))
    epoch = require_int("markers.coordinator_epoch", marker.coordinator_epoch)
    require_count(
        "markers.participants.group_ids", marker.participants.group_ids, maximum=GROUPS_MAX
    )
    return TxnMarker(
        transaction=transaction(marker.producer_id, marker.producer_epoch),
        result=TransactionResult(result),
        coordinator_epoch=epoch,
        group_ids=tuple(map(group_id, marker.participants.group_ids)),
    )


def _marker_result(
    marker: wire.TxnMarker, refused: Sequence[RefusedMarker]
) -> wire.TxnMarkerResult:
    """Return the participants that did not take a marker; a partition never does."""
    result = wire.TxnMarkerResult()
    for refusal in refused:
        group = wire.Participant(group_id=refusal.group_id)
        result.errors.add(participant=group, error=to_value(refusal.error))
    for topic in marker.participants.topics:
        for partition in topic.partitions:
            place = wire.TopicPartition(topic_id=topic.topic_id, partition=partition)
            error = InvalidRequestError("a group coordinator holds no partitions")
            result.errors.add(
                participant=wire.Participant(topic_partition=place), error=to_value(error)
            )
    return result
