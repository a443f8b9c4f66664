"""The requests of the scenarios, one function for each kind."""

import uuid
from dataclasses import dataclass

from loadtest.target import TOPIC, Target
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1.participants_pb2 import Participants, TopicPartitions, TransactionResult
from semel.common.v1.records_pb2 import Record
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as group

RECORDS_PER_CALL = 10
_RECORD_BYTES = 100
_FETCH_BYTES = 16_384
_TIMEOUT_MS = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """One transactional id with a transaction that may be written."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partition: int
    group_id: str


def init_request(transactional_id: str) -> transactions.InitProducerIdRequest:
    """Return a request that begins an instance of an id."""
    return transactions.InitProducerIdRequest(
        transactional_id=transactional_id, instance_id=uuid.uuid4().hex, init_number=1,
        transaction_timeout_ms=_TIMEOUT_MS, wait=transactions.WAIT_FOR_DECIDED,
    )  # fmt: skip


def produce_request(
    target: Target, partition: int, producer: Producer | None = None
) -> broker.ProduceRequest:
    """Return an append, in a transaction's first batch if there is a producer."""
    value = bytes(_RECORD_BYTES)
    records = broker.PlainRecords(records=[Record(value=value)] * RECORDS_PER_CALL)
    if producer:
        records.producer_id = producer.producer_id
        records.producer_epoch = producer.producer_epoch
        records.transactional = True
    name = producer.transactional_id if producer else ""
    each = broker.ProducePartition(topic_id=target.topic_id, partition=partition, records=records)
    return broker.ProduceRequest(transactional_id=name, partitions=[each])


def end_request(
    target: Target, producer: Producer, *, groups: bool = False
) -> transactions.EndTxnRequest:
    """Return a commit of what `produce_request` or `offsets_request` has written."""
    written = Participants(
        topics=[TopicPartitions(topic_id=target.topic_id, partitions=[producer.partition])]
    )
    if groups:
        written = Participants(group_ids=[producer.group_id])
    return transactions.EndTxnRequest(
        transactional_id=producer.transactional_id, producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch, participants=written,
        result=TransactionResult.TRANSACTION_RESULT_COMMIT,
    )  # fmt: skip


def offsets_of(partition: int) -> list[group.OffsetCommitTopic]:
    """Return an offset of one partition."""
    offset = group.OffsetCommitPartition(partition=partition, committed_offset=1)
    return [group.OffsetCommitTopic(topic=TOPIC, partitions=[offset])]


def offsets_request(producer: Producer) -> group.TxnOffsetCommitRequest:
    """Return a commit of an offset in a transaction."""
    return group.TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id, producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch, group_id=producer.group_id, member_epoch=-1,
        topics=offsets_of(producer.partition),
    )  # fmt: skip


def commit_request(group_id: str, partition: int) -> group.CommitOffsetsRequest:
    """Return a commit of an offset outside of transactions."""
    return group.CommitOffsetsRequest(
        group_id=group_id, member_epoch=-1, topics=offsets_of(partition)
    )


def fetch_request(target: Target, partition: int, offset: int) -> broker.FetchRequest:
    """Return a read of plain records."""
    each = broker.FetchPartition(topic_id=target.topic_id, partition=partition, fetch_offset=offset)
    return broker.FetchRequest(
        isolation_level=broker.ISOLATION_LEVEL_READ_COMMITTED, plain_records=True,
        min_bytes=1, max_bytes=_FETCH_BYTES, partitions=[each],
    )  # fmt: skip
