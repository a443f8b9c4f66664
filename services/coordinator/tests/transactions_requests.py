"""Requests to the transactions' service: valid ones, with the fields that a test gives."""

from google.protobuf.message import Message
from transactions_harness import TIMEOUT_MS
from transactions_service_harness import Coordinator

from semel.common.v1 import participants_pb2
from semel.coordinator.v1 import transactions_pb2 as wire

COMMIT = participants_pb2.TRANSACTION_RESULT_COMMIT


async def ask(coordinator: Coordinator, request: Message) -> Message:
    """Give a request to the handler that is registered for it."""
    return await coordinator.ask(request)


def topics(*partitions: int, topic_id: str = "topic-a") -> list[participants_pb2.TopicPartitions]:
    return [participants_pb2.TopicPartitions(topic_id=topic_id, partitions=partitions)]


def init(**fields: str | int) -> wire.InitProducerIdRequest:
    given = {
        "transactional_id": "app",
        "instance_id": "one",
        "init_number": 1,
        "transaction_timeout_ms": TIMEOUT_MS,
        "wait": 1,
    } | fields
    return wire.InitProducerIdRequest(**given)  # type: ignore[arg-type]  # what a test gives


def add(**fields: object) -> wire.AddPartitionsToTxnRequest:
    given = {"transactional_id": "app", "producer_id": 1, "topics": topics(0)} | fields
    return wire.AddPartitionsToTxnRequest(**given)  # type: ignore[arg-type]  # what a test gives


def offsets(**fields: object) -> wire.AddOffsetsToTxnRequest:
    given = {"transactional_id": "app", "producer_id": 1, "group_id": "group-g"} | fields
    return wire.AddOffsetsToTxnRequest(**given)  # type: ignore[arg-type]  # what a test gives


def end(**fields: object) -> wire.EndTxnRequest:
    given = {"transactional_id": "app", "producer_id": 1, "result": COMMIT} | fields
    return wire.EndTxnRequest(**given)  # type: ignore[arg-type]  # what a test gives


def end_with(**fields: object) -> wire.EndTxnRequest:
    return end(participants=participants_pb2.Participants(**fields))  # type: ignore[arg-type]  # what a test gives


def prepare(**fields: object) -> wire.PrepareTxnRequest:
    given = {"transactional_id": "app", "producer_id": 1} | fields
    return wire.PrepareTxnRequest(**given)  # type: ignore[arg-type]  # what a test gives


def prepare_with(**fields: object) -> wire.PrepareTxnRequest:
    return prepare(participants=participants_pb2.Participants(**fields))  # type: ignore[arg-type]  # what a test gives


def complete(**fields: object) -> wire.CompletePreparedTxnRequest:
    given = {"transactional_id": "app", "producer_id": 1, "result": COMMIT} | fields
    return wire.CompletePreparedTxnRequest(**given)  # type: ignore[arg-type]  # what a test gives


def inquire(**fields: object) -> wire.InquireTransactionsRequest:
    partition = participants_pb2.TopicPartition(topic_id="topic-a")
    given = {
        "producer_id": 1,
        "participant": participants_pb2.Participant(topic_partition=partition),
    } | fields
    return wire.InquireTransactionsRequest(
        cluster_id="test-cluster",
        inquiries=[wire.Inquiry(**given)],  # type: ignore[arg-type]  # what a test gives
    )


def inquire_of(**fields: object) -> wire.InquireTransactionsRequest:
    return inquire(participant=participants_pb2.Participant(**fields))  # type: ignore[arg-type]  # what a test gives
