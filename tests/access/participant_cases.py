"""The requests that the tests send to brokers and group coordinators; see ``cases``."""

from typing import Any

from access.case import (
    GROUP,
    KEY,
    READ_GROUP,
    SEE_GROUP,
    TOPIC,
    TXN,
    WRITE_TXN,
    Op,
    Rule,
    case_of,
    on_topic,
)
from access.cluster import BROKER, GROUP_COORDINATOR
from aiosemel import ResourceType
from semel.broker.v1 import broker_pb2 as broker
from semel.broker.v1 import moves_pb2 as moves
from semel.broker.v1 import producers_pb2 as producers
from semel.common.v1 import participants_pb2 as participants
from semel.common.v1.records_pb2 import Record, RecordBatch
from semel.group.v1 import group_pb2 as group
from semel.group.v1 import moves_pb2 as group_moves
from semel_common.wire import methods

PLAIN = broker.PlainRecords(records=[Record(value=b"v")])
TRANSACTIONAL: dict[str, Any] = {
    "records": {
        "records": broker.PlainRecords(
            records=[Record(value=b"v")], producer_id=1, transactional=True
        )
    },
    "batches": {"batches": [RecordBatch(producer_id=1, transactional=True)]},
}


def _offsets(topic: str = TOPIC) -> group.OffsetCommitTopic:
    return group.OffsetCommitTopic(
        topic=topic, partitions=[group.OffsetCommitPartition(partition=0, committed_offset=1)]
    )


BROKER_CASES = (
    case_of(
        methods.PRODUCE,
        BROKER,
        broker.ProduceRequest(
            partitions=[broker.ProducePartition(topic=TOPIC, partition=0, records=PLAIN)]
        ),
        on_topic(Op.WRITE),
    ),
    case_of(
        methods.PRODUCE,
        BROKER,
        lambda topic_id: broker.ProduceRequest(
            transactional_id=TXN,
            partitions=[broker.ProducePartition(topic_id=topic_id, partition=0, records=PLAIN)],
        ),
        on_topic(Op.WRITE),
        WRITE_TXN,
        name=" in a transaction",
    ),
    *(
        case_of(
            methods.PRODUCE,
            BROKER,
            broker.ProduceRequest(
                partitions=[broker.ProducePartition(topic=TOPIC, partition=0, **records)]
            ),
            on_topic(Op.WRITE),
            Rule(ResourceType.TRANSACTIONAL_ID, "*", Op.WRITE),
            name=f" of transactional {kind} without saying of which id",
        )
        for kind, records in TRANSACTIONAL.items()
    ),
    case_of(
        methods.FETCH,
        BROKER,
        broker.FetchRequest(
            min_bytes=1, partitions=[broker.FetchPartition(topic=TOPIC, partition=0)]
        ),
        on_topic(Op.READ),
    ),
    case_of(
        methods.LIST_OFFSETS,
        BROKER,
        broker.ListOffsetsRequest(
            partitions=[broker.ListOffsetsPartition(topic=TOPIC, spec=broker.OFFSET_SPEC_LATEST)]
        ),
        on_topic(Op.DESCRIBE),
    ),
    case_of(methods.COPY_LOG, BROKER, moves.CopyLogRequest()),
    case_of(methods.HAND_OVER_LOG, BROKER, moves.HandOverLogRequest()),
    case_of(
        methods.COUNT_RECORDS,
        BROKER,
        broker.CountRecordsRequest(partitions=[broker.CountRecordsPartition(topic=TOPIC)]),
        on_topic(Op.DESCRIBE),
    ),
    case_of(
        methods.DELETE_RECORDS,
        BROKER,
        broker.DeleteRecordsRequest(
            partitions=[broker.DeleteRecordsPartition(topic=TOPIC, all=True)], validate_only=True
        ),
        on_topic(Op.DELETE),
    ),
    case_of(
        methods.DESCRIBE_PRODUCERS,
        BROKER,
        lambda topic_id: producers.DescribeProducersRequest(
            partitions=[participants.TopicPartition(topic_id=topic_id, partition=0)]
        ),
        on_topic(Op.READ),
    ),
    case_of(
        methods.DESCRIBE_WRITES,
        BROKER,
        producers.DescribeWritesRequest(
            producer_id=1,
            partitions=[producers.DescribeWritesPartition(topic=TOPIC, from_offset=0)],
        ),
        on_topic(Op.READ),
    ),
    case_of(methods.BROKER_WRITE_TXN_MARKERS, BROKER, participants.WriteTxnMarkersRequest()),
    case_of(
        methods.LIST_OPEN_TRANSACTIONS,
        BROKER,
        participants.ListOpenTransactionsRequest(),
        on_topic(Op.DESCRIBE),
        name=" of partitions",
        shows=lambda found: bool(found.transactions),  # type: ignore[attr-defined]
    ),
)

GROUP_CASES = (
    case_of(
        methods.CONSUMER_GROUP_HEARTBEAT,
        GROUP_COORDINATOR,
        group.ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id="m",
            rebalance_timeout_ms=1_000,
            subscription=group.Subscription(topics=[TOPIC]),
        ),
        READ_GROUP,
        on_topic(Op.DESCRIBE),
    ),
    case_of(
        methods.COMMIT_OFFSETS,
        GROUP_COORDINATOR,
        group.CommitOffsetsRequest(group_id=GROUP, member_epoch=-1, topics=[_offsets()]),
        READ_GROUP,
        on_topic(Op.READ),
    ),
    case_of(
        methods.FETCH_OFFSETS,
        GROUP_COORDINATOR,
        group.FetchOffsetsRequest(
            group_id=GROUP, topics=[group.OffsetFetchTopic(topic=TOPIC, partitions=[0])]
        ),
        SEE_GROUP,
        on_topic(Op.DESCRIBE),
    ),
    case_of(
        methods.FETCH_OFFSETS,
        GROUP_COORDINATOR,
        group.FetchOffsetsRequest(group_id=GROUP, all_partitions=True),
        SEE_GROUP,
        on_topic(Op.DESCRIBE),
        name=" of all",
        shows=lambda found: bool(found.offsets),  # type: ignore[attr-defined]
    ),
    case_of(
        methods.TXN_OFFSET_COMMIT,
        GROUP_COORDINATOR,
        group.TxnOffsetCommitRequest(**KEY, group_id=GROUP, member_epoch=-1, topics=[_offsets()]),
        WRITE_TXN,
        READ_GROUP,
        on_topic(Op.READ),
    ),
    case_of(
        methods.LIST_GROUPS,
        GROUP_COORDINATOR,
        group.ListGroupsRequest(),
        SEE_GROUP,
        shows=lambda found: bool(found.groups),  # type: ignore[attr-defined]
    ),
    case_of(
        methods.DESCRIBE_GROUPS,
        GROUP_COORDINATOR,
        group.DescribeGroupsRequest(group_ids=[GROUP]),
        SEE_GROUP,
    ),
    case_of(
        methods.DESCRIBE_GROUPS,
        GROUP_COORDINATOR,
        group.DescribeGroupsRequest(group_ids=[GROUP]),
        SEE_GROUP,
        on_topic(Op.DESCRIBE),
        name=" with what is pending",
        shows=lambda found: any(
            pending.topics
            for each in found.groups  # type: ignore[attr-defined]
            for pending in each.pending
        ),
    ),
    case_of(
        methods.DELETE_OFFSETS,
        GROUP_COORDINATOR,
        group.DeleteOffsetsRequest(
            group_id=GROUP, topics=[group.OffsetFetchTopic(topic=TOPIC, partitions=[0])]
        ),
        Rule(ResourceType.GROUP, GROUP, Op.DELETE),
        on_topic(Op.READ),
    ),
    case_of(
        methods.DELETE_GROUPS,
        GROUP_COORDINATOR,
        group.DeleteGroupsRequest(group_ids=[GROUP]),
        Rule(ResourceType.GROUP, GROUP, Op.DELETE),
    ),
    case_of(methods.HAND_OVER_GROUPS, GROUP_COORDINATOR, group_moves.HandOverGroupsRequest()),
    case_of(
        methods.GROUP_WRITE_TXN_MARKERS,
        GROUP_COORDINATOR,
        participants.WriteTxnMarkersRequest(),
        name=" of groups",
    ),
    case_of(
        methods.LIST_OPEN_TRANSACTIONS,
        GROUP_COORDINATOR,
        participants.ListOpenTransactionsRequest(),
        SEE_GROUP,
        name=" of groups",
        shows=lambda found: bool(found.transactions),  # type: ignore[attr-defined]
    ),
)
