"""A joint transaction of a cluster in memory, which answers as if all went well."""

from google.protobuf.message import Message
from producer_harness import FakeCluster

from aiosemel import JointHandle, JointReceipt
from semel.common.v1.participants_pb2 import TRANSACTION_RESULT_COMMIT
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.ids import GroupId, TopicPartition

HANDLE = JointHandle(
    transactional_id="sink", txn_version=7, owner="query", run="run", transaction_timeout_ms=3_000
)
NAME = wire.JointTransaction(transactional_id="sink", txn_version=7, owner="query", run="run")
RECEIPT = JointReceipt(
    handle=HANDLE,
    producer_id=5,
    producer_epoch=2,
    participants=(TopicPartition("id", 0), TopicPartition("id", 3), GroupId("g")),
)


def joint_cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.create_topic("t", partitions=4)
    answers: dict[str, Message] = {
        "JoinTxn": wire.JoinTxnResponse(producer_id=77, producer_epoch=3),
        "KeepAliveTxn": wire.KeepAliveTxnResponse(),
        "EndJointTxn": wire.EndJointTxnResponse(result=TRANSACTION_RESULT_COMMIT),
        "AddPartitionsToTxn": wire.AddPartitionsToTxnResponse(),
        "AddOffsetsToTxn": wire.AddOffsetsToTxnResponse(),
    }
    for name, answer in answers.items():
        cluster.canned["coordinator:1", name] = answer
    return cluster


def ends(fake: FakeCluster) -> list[wire.EndJointTxnRequest]:
    return fake.asked(wire.EndJointTxnRequest)
