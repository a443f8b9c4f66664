"""Each fact in an answer must be on disk: no answer depends on state that a crash undoes."""

from typing import Any

from google.protobuf.message import Message

from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import transactions_pb2 as coordinator
from semel.group.v1 import group_pb2 as group
from semel_common.ids import TopicPartition, transaction_log_partition_of
from simulation.durable import Durable, Transaction
from simulation.invariants import Invariants
from simulation.world import Life

_COMMIT = participants.TRANSACTION_RESULT_COMMIT

Pending = tuple[Transaction, TopicPartition]
"""A transaction that is open in a group, and the partition whose offset it may move."""


class Answers:
    """Compares each answer with its service's state on disk."""

    def __init__(self, invariants: Invariants) -> None:
        self._invariants = invariants
        self._answered: set[tuple[int, int]] = set()
        """Epochs of producer ids that were on disk when they were answered first."""

    def arrived(self, service: str, life: Life, request: Message) -> object:
        """Return the facts on disk when a request comes, as far as its answer must keep to them."""
        match request:
            case participants.WriteTxnMarkersRequest() if not self._invariants.owns_disk(life):
                return {}  # It lingers: it may repeat an earlier answer, and can write nothing.
            case participants.WriteTxnMarkersRequest():
                return dict(self._invariants.durable(service).coordinators_heard)
            case group.FetchOffsetsRequest(require_stable=True):
                return _pending(self._invariants.durable(service), request.group_id)
            case group.TxnOffsetCommitRequest():
                durable = self._invariants.durable(service)
                return None if _is_taken(durable, request) else _held(durable, request)
            case _:
                return None

    def answered(self, service: str, request: Message, response: Message, seen: object) -> None:
        """Look at one answer, at the moment when it leaves."""
        durable = self._invariants.durable(service)
        match request, response:
            case broker.ProduceRequest(), broker.ProduceResponse():
                self._produce(durable, response)
            case broker.FetchRequest(), broker.FetchResponse():
                self._fetch(durable, response)
            case participants.WriteTxnMarkersRequest(), participants.WriteTxnMarkersResponse():
                assert isinstance(seen, dict)
                self._markers(durable, request, response, seen)
            case group.TxnOffsetCommitRequest(), _:
                assert seen is None or isinstance(seen, frozenset)
                self._offsets(durable, request, seen)
            case group.FetchOffsetsRequest(require_stable=True), group.FetchOffsetsResponse():
                assert isinstance(seen, frozenset)
                self._fetched(durable, request, response, seen)
            case coordinator.InitProducerIdRequest(), coordinator.InitProducerIdResponse():
                if request.HasField("transactional_id"):
                    self._epoch(durable, response.producer_id, response.producer_epoch)
            case coordinator.EndTxnRequest(), coordinator.EndTxnResponse():
                self._end_txn(durable, request, response)
            case (
                coordinator.InquireTransactionsRequest(),
                coordinator.InquireTransactionsResponse(),
            ):
                self._inquiry(durable, request, response)
            case _:
                pass

    # -- brokers and groups ----------------------------------------------------------------------

    def _produce(self, durable: Durable, response: broker.ProduceResponse) -> None:
        for partition in response.partitions:
            if not partition.HasField("error"):
                end = durable.log_ends.get(durable.logs[partition.topic_id, partition.partition], 0)
                self._check(
                    partition.base_offset < end, f"{partition} was answered, on disk is {end}"
                )

    def _fetch(self, durable: Durable, response: broker.FetchResponse) -> None:
        for partition in response.partitions:
            if partition.HasField("error"):
                continue
            log = durable.logs[partition.topic_id, partition.partition]
            end, stable = durable.log_ends.get(log, 0), durable.stable.get(log, 0)
            text = f"{log}: {partition.high_watermark} was answered as end, on disk is {end}"
            self._check(partition.high_watermark <= end, text)
            text = (
                f"{log}: {partition.last_stable_offset} was answered as stable, on disk is {stable}"
            )
            self._check(partition.last_stable_offset <= stable, text)

    def _markers(
        self,
        durable: Durable,
        request: participants.WriteTxnMarkersRequest,
        response: participants.WriteTxnMarkersResponse,
        heard: dict[int, int],
    ) -> None:
        for marker, result in zip(request.markers, response.results, strict=True):
            newest = heard.get(transaction_log_partition_of(marker.producer_id), -1)
            deposed = marker.coordinator_epoch < newest
            refused = {error.participant.SerializeToString() for error in result.errors}
            for name, log in _logs_of(durable, marker.participants):
                if name.SerializeToString() not in refused:
                    text = f"coordinator epoch {marker.coordinator_epoch} is taken after {newest}"
                    self._check(not deposed, text)
                    fence = durable.fences.get((log, marker.producer_id), 0)
                    text = f"{log}: marker of {marker.producer_id}/{marker.producer_epoch} answered"
                    self._check(fence > marker.producer_epoch, f"{text}, the fence is {fence}")

    def _offsets(
        self,
        durable: Durable,
        request: group.TxnOffsetCommitRequest,
        held_before: frozenset[TopicPartition] | None,
    ) -> None:
        text = f"offsets of {request.producer_id}/{request.producer_epoch} in {request.group_id}"
        self._check(_is_taken(durable, request), f"{text} are answered, but not on disk")
        if held_before is None or not request.member_id:
            return  # A repeat may be answered when its member has lost the partition.
        held = held_before | _held(durable, request)
        for topic in request.topics:
            for partition in topic.partitions:
                place = TopicPartition(topic.topic_id, partition.partition)
                self._check(not topic.topic_id or place in held, f"{text}: {place} is not held")

    def _fetched(
        self,
        durable: Durable,
        request: group.FetchOffsetsRequest,
        response: group.FetchOffsetsResponse,
        pending_before: frozenset[Pending],
    ) -> None:
        pending = pending_before & _pending(durable, request.group_id)
        unstable = {place for _, place in pending}
        for offset in response.offsets:
            stable = offset.HasField("error") or (offset.topic_id, offset.partition) not in unstable
            self._check(
                stable, f"{offset.topic}-{offset.partition} is told, a transaction may move it"
            )

    # -- coordinators ----------------------------------------------------------------------------

    def _end_txn(
        self,
        durable: Durable,
        request: coordinator.EndTxnRequest,
        response: coordinator.EndTxnResponse,
    ) -> None:
        producer_id, epoch = request.producer_id, request.producer_epoch
        same = response.producer_id == producer_id and response.producer_epoch == epoch + 1
        self._check(
            same, f"end of {producer_id}/{epoch} is answered with epoch {response.producer_epoch}"
        )
        self._epoch(durable, producer_id, epoch + 1)
        commits = self._invariants.decided.get((producer_id, epoch), False)
        if request.result != _COMMIT:
            self._check(not commits, f"abort of {producer_id}/{epoch}, which commits, is answered")
        elif request.participants.ListFields():
            self._check(commits, f"commit of {producer_id}/{epoch} is answered, not on disk")

    def _epoch(self, durable: Durable, producer_id: int, epoch: int) -> None:
        known = durable.epochs.get(producer_id, -1)
        # A process that lingers may repeat what it has handed over since, and can write nothing.
        repeated = (producer_id, epoch) in self._answered
        text = f"{producer_id}: {epoch} is answered, on disk is {known}"
        self._check(repeated or known >= epoch, text)
        self._answered.add((producer_id, epoch))

    def _inquiry(
        self,
        durable: Durable,
        request: coordinator.InquireTransactionsRequest,
        response: coordinator.InquireTransactionsResponse,
    ) -> None:
        for inquiry, answer in zip(request.inquiries, response.answers, strict=True):
            key = (inquiry.producer_id, inquiry.producer_epoch)
            decided = self._invariants.decided.get(key)
            if answer.outcome == coordinator.INQUIRY_OUTCOME_COMMITTED:
                self._check(decided is True, f"{key} is told to commit, it is decided: {decided}")
            elif answer.outcome == coordinator.INQUIRY_OUTCOME_ABORTED:
                current = durable.epochs.get(inquiry.producer_id)
                past = current is None or current > inquiry.producer_epoch
                self._check(past, f"{key} is told to abort while its epoch goes on")

    def _check(self, holds: bool, what: str) -> None:
        self._invariants.note(holds, what)


def _pending(durable: Durable, group_id: str) -> frozenset[Pending]:
    return frozenset(
        (transaction, place)
        for (name, transaction), places in durable.pending.items()
        if name == group_id
        for place in places
    )


def _held(durable: Durable, request: group.TxnOffsetCommitRequest) -> frozenset[TopicPartition]:
    return durable.held.get((request.group_id, request.member_id), frozenset())


def _is_taken(durable: Durable, request: group.TxnOffsetCommitRequest) -> bool:
    key = (request.group_id, request.producer_id)
    epoch, sequence = durable.sequences.get(key, (-1, 0))
    # Epochs go on: a repeat may be answered after its own has ended.
    same = epoch == request.producer_epoch and sequence > request.base_sequence
    return same or epoch > request.producer_epoch


def _logs_of(durable: Durable, named: participants.Participants) -> list[tuple[Message, Any]]:
    found: list[tuple[Message, Any]] = []
    for topic in named.topics:
        for partition in topic.partitions:
            place = participants.TopicPartition(topic_id=topic.topic_id, partition=partition)
            participant = participants.Participant(topic_partition=place)
            found.append((participant, durable.logs.get((topic.topic_id, partition))))
    groups = ((participants.Participant(group_id=each), each) for each in named.group_ids)
    return [*found, *groups]
