"""From the machines' values to messages of the wire."""

from collections.abc import Iterable, Mapping

from aiosemel._consumer.group.committed_offsets import to_commit
from aiosemel._producer.batching.batch import Batch, Request
from aiosemel._producer.batching.batch_splitting import columns_of
from aiosemel._producer.transactions.end_requests import EndTxn, PrepareTxn
from aiosemel.options.client_options import Compression
from aiosemel.types.offsets import OffsetAndMetadata, PartitionKey
from aiosemel.types.prepared_transaction import PreparedTransactionId
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1 import participants_pb2 as participants
from semel.common.v1.records_pb2 import Codec, RecordBatch
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.coordinator.v1.outcomes_pb2 import Operator
from semel.group.v1 import group_pb2 as group
from semel_common import ids
from semel_common.ids import GroupId, Participant
from semel_common.record_batches.batches import (
    encode_parts,
    encode_records,
    newest,
    written,
)
from semel_common.record_batches.compression import compress
from semel_common.record_batches.headers import HeaderPairs
from semel_common.record_batches.payload_limits import HEADER_OVERHEAD_BYTES, HEADERS_PER_RECORD_MAX
from semel_common.telemetry.trace_context import TRACEPARENT, TRACEPARENT_LENGTH, write
from semel_common.wire.messages.message_pieces import Pieces, Written, tag, within

_PARTITIONS = tag(broker.ProduceRequest, "partitions")
_BATCHES = tag(broker.ProducePartition, "batches")
_TRACE_HEADER_BYTES = len(TRACEPARENT) + TRACEPARENT_LENGTH + HEADER_OVERHEAD_BYTES

CODECS = {Compression.NONE: Codec.CODEC_UNSPECIFIED, Compression.ZSTD: Codec.CODEC_ZSTD}


def check_codec(compression: Compression) -> None:
    """Raise InvalidConfigError if the codec is not installed."""
    compress(b"", CODECS[compression])


def produce_request(
    request: Request,
    *,
    transactional_id: str | None,
    compression: Compression,
    producer_token: bytes = b"",
) -> Written[broker.ProduceRequest]:
    """Write the request that carries batches to one broker; each payload is a piece of its own."""
    transaction = broker.ProduceRequest(transactional_id=transactional_id or "")
    token = broker.ProduceRequest(producer_token=producer_token)
    pieces = [transaction.SerializeToString()]
    for batch in request.batches:
        payload = payload_of(batch, compression)
        header = RecordBatch(
            record_count=batch.record_count,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            transactional=transactional_id is not None,
            max_timestamp_ms=newest(batch.timestamps_ms),
            codec=CODECS[compression],
        )
        pieces += within(_PARTITIONS, _partition(batch, written(header, payload)))
    return Written((*pieces, token.SerializeToString()))


def payload_of(batch: Batch, compression: Compression) -> Pieces:
    """Return the pieces of a payload, compressed."""
    payload = _records(batch)
    if compression is Compression.NONE:
        return payload
    return (compress(b"".join(payload), CODECS[compression]),)


def _records(batch: Batch) -> Pieces:
    headers = batch.headers if batch.span is None else traced(batch)
    if batch.encoded and not headers:
        return encode_parts(batch.encoded, batch.timestamps_ms)
    return (encode_records(columns_of(batch, headers)),)


def _partition(batch: Batch, content: Pieces) -> Pieces:
    """Write the ``ProducePartition`` of a batch."""
    topic_id, partition = batch.topic_partition
    begin = broker.ProducePartition(topic_id=topic_id, partition=partition)
    end = broker.ProducePartition(expected_base_offset=batch.expected_base_offset)
    return (begin.SerializeToString(), *within(_BATCHES, content), end.SerializeToString())


def traced(batch: Batch) -> dict[int, HeaderPairs]:
    """Return the headers of records that say what wrote them.

    Where all of them together would make the batch too large, only the first record says it, if
    that fits. A record that has as many headers as it may have does not say it.
    """
    assert batch.span is not None, "only of a batch that is traced"
    context = batch.span.get_span_context()
    if not context.trace_flags.sampled:
        return batch.headers
    header = (TRACEPARENT, write(context).encode())
    room = max(0, batch.limit_bytes - batch.size_bytes) // _TRACE_HEADER_BYTES
    count = batch.record_count if room >= batch.record_count else min(room, 1)
    told = {at: batch.headers.get(at, ()) for at in range(count)}
    return batch.headers | {
        at: (*headers, header)
        for at, headers in told.items()
        if len(headers) < HEADERS_PER_RECORD_MAX
    }


def topic_partitions(
    partitions: Iterable[ids.TopicPartition],
) -> list[participants.TopicPartitions]:
    """Group partitions by topic."""
    by_topic: dict[str, list[int]] = {}
    for topic_id, partition in partitions:
        by_topic.setdefault(topic_id, []).append(partition)
    return [
        participants.TopicPartitions(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in by_topic.items()
    ]


def end_txn_request(
    end: EndTxn, transactional_id: str, *, wait_until_visible: bool
) -> transactions.EndTxnRequest:
    """Make the request that ends a transaction, with its participants."""
    return transactions.EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=end.producer_id,
        producer_epoch=end.producer_epoch,
        result=_result(end.commit),
        participants=participants_message(end.participants),
        wait=wait_for(wait_until_visible),
    )


def prepare_request(prepare: PrepareTxn, transactional_id: str) -> transactions.PrepareTxnRequest:
    """Make the request that prepares a transaction, with its participants."""
    return transactions.PrepareTxnRequest(
        transactional_id=transactional_id,
        producer_id=prepare.producer_id,
        producer_epoch=prepare.producer_epoch,
        participants=participants_message(prepare.participants),
    )


def complete_prepared_request(
    prepared: PreparedTransactionId,
    *,
    commit: bool,
    producer_epoch: int | None,
    wait_until_visible: bool,
    operator: Operator | None,
) -> transactions.CompletePreparedTxnRequest:
    """Make the request that decides a prepared transaction."""
    return transactions.CompletePreparedTxnRequest(
        transactional_id=prepared.transactional_id,
        producer_id=prepared.producer_id,
        prepared_epoch=prepared.producer_epoch,
        producer_epoch=producer_epoch,
        result=_result(commit),
        wait=wait_for(wait_until_visible),
        operator=operator,
    )


def _result(commit: bool) -> participants.TransactionResult.ValueType:
    if commit:
        return participants.TRANSACTION_RESULT_COMMIT
    return participants.TRANSACTION_RESULT_ABORT


def wait_for(visible: bool) -> transactions.WaitFor.ValueType:
    """Say what must have happened before an answer."""
    return transactions.WAIT_FOR_COMPLETE if visible else transactions.WAIT_FOR_DECIDED


def participants_message(named: Iterable[Participant]) -> participants.Participants:
    """Group participants as a message."""
    partitions: list[ids.TopicPartition] = []
    group_ids: list[str] = []
    for participant in named:
        if isinstance(participant, GroupId):
            group_ids.append(participant.group_id)
        else:
            partitions.append(participant)
    return participants.Participants(topics=topic_partitions(partitions), group_ids=group_ids)


def offset_topics(
    offsets: Mapping[PartitionKey, OffsetAndMetadata | int],
) -> list[group.OffsetCommitTopic]:
    """Group offsets by topic; raises as ``to_commit``."""
    by_topic: dict[str, list[group.OffsetCommitPartition]] = {}
    for (topic, partition), (offset, metadata) in to_commit(offsets).items():
        by_topic.setdefault(topic, []).append(
            group.OffsetCommitPartition(
                partition=partition, committed_offset=offset, metadata=metadata
            )
        )
    return [
        group.OffsetCommitTopic(topic=topic, partitions=partitions)
        for topic, partitions in by_topic.items()
    ]
