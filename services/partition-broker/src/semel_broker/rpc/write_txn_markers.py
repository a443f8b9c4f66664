"""WriteTxnMarkers: a transaction coordinator ends transactions in partitions."""

from collections.abc import Sequence
from itertools import chain

from semel.common.v1.participants_pb2 import (
    Participant,
    TransactionResult,
    TxnMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from semel.common.v1.participants_pb2 import TopicPartition as WirePartition
from semel_broker.machine import BrokerMachine
from semel_broker.machine.values import Outcome
from semel_broker.rpc.outcome_writer import OutcomeWriter
from semel_common.errors import (
    BrokerNotAvailableError,
    InconsistentClusterIdError,
    InvalidRequestError,
)
from semel_common.ids import TopicPartition
from semel_common.wire.messages.request_bounds import ABORTED_PARTICIPANTS_MAX, MARKERS_MAX
from semel_common.wire.status import to_value
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import INT64_MAX, require_count, require_int, require_known

_COMMIT = TransactionResult.TRANSACTION_RESULT_COMMIT
_ABORT = TransactionResult.TRANSACTION_RESULT_ABORT


class MarkerWriter:
    """Answers WriteTxnMarkers."""

    def __init__(self, machine: BrokerMachine, writer: OutcomeWriter) -> None:
        self._machine = machine
        self._writer = writer

    async def write_txn_markers(
        self, request: WriteTxnMarkersRequest, call: Call
    ) -> WriteTxnMarkersResponse:
        """End transactions here; answer once the outcomes are durable.

        If no call waits for them behind the coordinator, they have time.
        """
        del call
        self._check_cluster(request.cluster_id)
        require_count("markers", request.markers, maximum=MARKERS_MAX)
        _check_participants(request.markers)
        outcomes = [_outcomes(marker) for marker in request.markers]
        all_outcomes = list(chain.from_iterable(outcomes))
        refusals = iter(await self._writer.write(all_outcomes, patient=not request.awaited))
        response = WriteTxnMarkersResponse()
        for marker, of_marker in zip(request.markers, outcomes, strict=True):
            result = response.results.add()
            for outcome in of_marker:
                refusal = next(refusals)
                if refusal is not None:
                    result.errors.add(participant=_participant(outcome), error=to_value(refusal))
            for group_id in marker.participants.group_ids:
                error = InvalidRequestError(f"group {group_id!r} is no participant at a broker")
                result.errors.add(participant=Participant(group_id=group_id), error=to_value(error))
        return response

    def _check_cluster(self, cluster_id: str) -> None:
        own = self._machine.cluster.cluster_id
        if not own:
            raise BrokerNotAvailableError("this broker has not heard from the controller yet")
        if cluster_id != own:
            raise InconsistentClusterIdError(
                f"this broker belongs to cluster {own}, not to {cluster_id!r}"
            )


def _check_participants(markers: Sequence[TxnMarker]) -> None:
    """Check how much markers are about, before any of it is looked at."""
    partitions = groups = 0
    for marker in markers:
        partitions += sum(len(topic.partitions) for topic in marker.participants.topics)
        groups += len(marker.participants.group_ids)
    require_int("number of partitions", partitions, maximum=ABORTED_PARTICIPANTS_MAX)
    require_int("number of groups", groups, maximum=ABORTED_PARTICIPANTS_MAX)


def _outcomes(marker: TxnMarker) -> list[Outcome]:
    """Check a marker, and make one outcome for each of its partitions."""
    producer_id = require_int("producer_id", marker.producer_id, minimum=1)
    epoch = require_int("producer_epoch", marker.producer_epoch, maximum=INT64_MAX - 1)
    coordinator_epoch = require_int("coordinator_epoch", marker.coordinator_epoch)
    committed = require_known("result", marker.result, (_COMMIT, _ABORT)) == _COMMIT
    return [
        Outcome(
            partition=TopicPartition(topic.topic_id, partition),
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
        )
        for topic in marker.participants.topics
        for partition in topic.partitions
    ]


def _participant(outcome: Outcome) -> Participant:
    topic_id, partition = outcome.partition
    return Participant(topic_partition=WirePartition(topic_id=topic_id, partition=partition))
