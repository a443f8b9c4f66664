"""Answers that cannot be believed, or do not fit their request, each by its field."""

import pytest
from google.protobuf.message import Message

from aiosemel._answers.connector import check_answer
from aiosemel.errors import InvalidResponseError
from semel.broker.v1 import broker_pb2 as broker
from semel.broker.v1 import producers_pb2 as producers
from semel.common.v1 import participants_pb2 as participants
from semel.common.v1.records_pb2 import RecordBatch
from semel.coordinator.v1 import acls_pb2 as acls
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.coordinator.v1 import outcomes_pb2 as outcomes
from semel.coordinator.v1 import quotas_pb2 as quotas
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as group
from semel_common.wire import methods
from semel_common.wire.methods import Method

HERE = "broker:1"
LAYOUT = cluster.ClusterLayout(
    transaction_log_partitions=5, coordinators=1, group_partitions=5, group_coordinators=1
)


def metadata(**fields: object) -> cluster.MetadataResponse:
    answer = cluster.MetadataResponse(cluster_id="c", version=1, layout=LAYOUT)
    answer.MergeFrom(cluster.MetadataResponse(**fields))  # type: ignore[arg-type]  # a test's own
    return answer


def topic(*indexes: int, name: str = "t", **fields: object) -> cluster.Topic:
    partitions = [cluster.Partition(index=index) for index in indexes]
    return cluster.Topic(name=name, topic_id="id", partitions=partitions, **fields)  # type: ignore[arg-type]  # a test's own


def instance(**fields: object) -> cluster.Instance:
    known = {"role": cluster.SERVICE_ROLE_BROKER, "host": "h", "port": 1}
    return cluster.Instance(**known | fields)  # type: ignore[arg-type]  # a test's own


ALL_TOPICS = cluster.MetadataRequest(all_topics=True)
FETCH = broker.FetchRequest(
    partitions=[broker.FetchPartition(topic_id="id", partition=1, fetch_offset=5)]
)


def fetched(*batches: tuple[int, int], **fields: object) -> broker.FetchResponse:
    known = {"topic_id": "id", "partition": 1, "high_watermark": 9, "next_offset": 9}
    return broker.FetchResponse(
        partitions=[
            broker.FetchPartitionResult(
                batches=[RecordBatch(base_offset=at, record_count=count) for at, count in batches],
                **known | fields,  # type: ignore[arg-type]  # a test's own
            )
        ]
    )


OFFSETS = group.FetchOffsetsRequest(
    topics=[group.OffsetFetchTopic(topic="t", topic_id="id", partitions=[0, 1])]
)


def offsets(*found: tuple[str, int, int]) -> group.FetchOffsetsResponse:
    return group.FetchOffsetsResponse(
        offsets=[
            group.FetchedOffset(topic=name, topic_id="id", partition=number, committed_offset=at)
            for name, number, at in found
        ]
    )


LIST = broker.ListOffsetsRequest(
    partitions=[broker.ListOffsetsPartition(topic_id="id", spec=broker.OFFSET_SPEC_EARLIEST)]
)
COUNT = broker.CountRecordsRequest(
    partitions=[broker.CountRecordsPartition(topic_id="id", from_offset=5)]
)
WRITES = producers.DescribeWritesRequest(
    partitions=[producers.DescribeWritesPartition(topic_id="id", from_offset=5)]
)
HEARTBEAT = group.ConsumerGroupHeartbeatRequest(member_id="m", member_epoch=7)


def beat(**fields: object) -> group.ConsumerGroupHeartbeatResponse:
    known = {"member_id": "m", "member_epoch": 7, "heartbeat_interval_ms": 1_000}
    return group.ConsumerGroupHeartbeatResponse(**known | fields)  # type: ignore[arg-type]  # a test's own


def assigned(*partitions: int, topic_id: str = "id") -> group.Assignment:
    held = group.AssignedTopic(topic_id=topic_id, topic="t", partitions=partitions)
    return group.Assignment(topics=[held])


def counted(**fields: int) -> broker.CountRecordsResponse:
    result = broker.CountRecordsPartitionResult(topic_id="id", **fields)  # type: ignore[arg-type]  # numbers
    return broker.CountRecordsResponse(partitions=[result])


def written(**fields: int) -> producers.DescribeWritesResponse:
    known = {"first_offset": -1, "last_offset": -1, "first_timestamp_ms": -1, "marker_offset": -1}
    result = producers.PartitionWrites(topic_id="id", **(known | fields))  # type: ignore[arg-type]  # numbers
    return producers.DescribeWritesResponse(partitions=[result])


def listed(offset: int, **fields: object) -> broker.ListOffsetsResponse:
    known = {"topic_id": "id", "offset": offset} | fields
    result = broker.ListOffsetsPartitionResult(**known)  # type: ignore[arg-type]  # a test's own
    return broker.ListOffsetsResponse(partitions=[result])


def open_at(participant: participants.Participant) -> participants.ListOpenTransactionsResponse:
    """Return an open transaction without a first offset, as groups have them."""
    found = participants.OpenTransaction(
        participant=participant, producer_id=3, start_time_ms=1, first_offset=-1
    )
    return participants.ListOpenTransactionsResponse(transactions=[found])


END = transactions.EndTxnRequest(producer_id=3, producer_epoch=8)
PLACE = participants.TopicPartition(topic_id="id")
COMMIT = participants.TRANSACTION_RESULT_COMMIT
ABORT = participants.TRANSACTION_RESULT_ABORT

WRONG: list[tuple[Method[Message, Message], Message, Message, str]] = [
    (methods.METADATA, ALL_TOPICS, cluster.MetadataResponse(), "cluster_id '', which is empty"),
    (methods.METADATA, ALL_TOPICS, metadata(version=-1), "version -1, which is below 0"),
    (methods.METADATA, ALL_TOPICS, metadata(throttle_time_ms=-1), "throttle_time_ms -1"),
    (
        methods.METADATA,
        ALL_TOPICS,
        metadata(layout=cluster.ClusterLayout(transaction_log_partitions=1 << 30)),
        "transaction_log_partitions 1073741824, which is not within 1 to 32768",
    ),
    (methods.METADATA, ALL_TOPICS, metadata(instances=[instance(role=0)]), "instances.role 0"),
    (methods.METADATA, ALL_TOPICS, metadata(instances=[instance(port=70_000)]), "port 70000"),
    (methods.METADATA, ALL_TOPICS, metadata(instances=[instance(host="a b")]), "host 'a b'"),
    (methods.METADATA, ALL_TOPICS, metadata(instances=[instance()] * 2), "comes twice"),
    (methods.METADATA, ALL_TOPICS, metadata(topics=[topic(0, -5)]), "partitions.index [-5, 0]"),
    (methods.METADATA, ALL_TOPICS, metadata(topics=[topic(0, 2)]), "partitions.index [0, 2]"),
    (methods.METADATA, ALL_TOPICS, metadata(topics=[topic(0, 0)]), "partitions.index"),
    (methods.METADATA, ALL_TOPICS, metadata(topics=[topic(0, name="../x")]), "is no name of a"),
    (methods.METADATA, ALL_TOPICS, metadata(topics=[topic(0)] * 2), "topics.name 't'"),
    (
        methods.METADATA,
        cluster.MetadataRequest(topics=["u"]),
        metadata(topics=[topic(0)]),
        "topics.name 't', which was not asked for",
    ),
    (methods.METADATA, cluster.MetadataRequest(topics=["u"]), metadata(), "is not answered"),
    (
        methods.METADATA,
        ALL_TOPICS,
        metadata(internal_partitions=[cluster.InternalPartition(topic="t")]),
        "internal_partitions.topic 't'",
    ),
    (
        methods.METADATA,
        cluster.MetadataRequest(all_topics=True, page_token="p"),
        metadata(next_page_token="p"),
        "next_page_token 'p', which is the token of this page",
    ),
    (methods.METADATA, ALL_TOPICS, metadata(next_page_token="x" * 5_000), "5,000 characters"),
    (methods.FETCH, FETCH, broker.FetchResponse(), "number of partitions 0, which is not 1"),
    (methods.FETCH, FETCH, fetched(partition=-5), "partitions.partition -5, which is not 1"),
    (methods.FETCH, FETCH, fetched(topic_id="other"), "partitions.topic_id 'other'"),
    (methods.FETCH, FETCH, fetched(next_offset=4), "next_offset 4, which is not within 5 to 9"),
    (methods.FETCH, FETCH, fetched(next_offset=10), "next_offset 10"),
    (methods.FETCH, FETCH, fetched(log_start_offset=-77), "log_start_offset -77"),
    (methods.FETCH, FETCH, fetched(last_stable_offset=10), "last_stable_offset 10"),
    (methods.FETCH, FETCH, fetched((-77, 90)), "batches.base_offset -77, which is below 0"),
    (methods.FETCH, FETCH, fetched((5, 0)), "batches.record_count 0"),
    (methods.FETCH, FETCH, fetched((7, 2), (5, 2)), "batches.base_offset 5, which is below 9"),
    (methods.FETCH, FETCH, fetched((2, 3)), "batches.base_offset 2, which is wholly below 5"),
    (methods.FETCH, FETCH, fetched((7, 3)), "next_offset 9, which is before the last batch"),
    (methods.FETCH, FETCH, fetched((5, 2), (7, 2), batch_outcomes=[1]), "1, which is not 2, the"),
    (methods.FETCH, FETCH, fetched(batch_outcomes=[3]), "number of batch_outcomes 1"),
    (methods.FETCH, FETCH, fetched((5, 2), batch_outcomes=[0]), "batch_outcomes 0, which is not k"),
    (methods.FETCH, FETCH, fetched((5, 2), batch_outcomes=[99]), "batch_outcomes 99"),
    (methods.LIST_OFFSETS, LIST, listed(-77), "partitions.offset -77, which is below 0"),
    (methods.LIST_OFFSETS, LIST, listed(1, partition=-5), "partitions.partition -5"),
    (methods.COUNT_RECORDS, COUNT, counted(next_offset=5, end_offset=9), "makes no progress"),
    (methods.COUNT_RECORDS, COUNT, counted(next_offset=4, end_offset=9), "next_offset 4"),
    (
        methods.COUNT_RECORDS,
        COUNT,
        counted(next_offset=7, end_offset=9, record_count=2, first_timestamp_ms=-1),
        "first_timestamp_ms -1, which is below 0",
    ),
    (
        methods.COUNT_RECORDS,
        COUNT,
        counted(next_offset=7, end_offset=9, record_count=3),
        "record_count 3, which is not within 0 to 2",
    ),
    (methods.DESCRIBE_WRITES, WRITES, written(next_offset=5, end_offset=9), "makes no progress"),
    (methods.DESCRIBE_WRITES, WRITES, written(next_offset=4, end_offset=9), "next_offset 4"),
    (
        methods.DESCRIBE_WRITES,
        WRITES,
        written(next_offset=7, end_offset=9, marker_offset=7),
        "marker_offset 7, which is not within -1 to 6",
    ),
    (
        methods.DESCRIBE_WRITES,
        WRITES,
        written(next_offset=7, end_offset=9, first_offset=6, last_offset=5),
        "last_offset 5, which is not within 6 to 6",
    ),
    (
        methods.LIST_OPEN_TRANSACTIONS,
        participants.ListOpenTransactionsRequest(),
        open_at(participants.Participant(topic_partition=PLACE)),
        "transactions.first_offset -1, which is below 0",
    ),
    (methods.FETCH_OFFSETS, OFFSETS, offsets(("t", 0, 3)), "number of offsets 1"),
    (methods.FETCH_OFFSETS, OFFSETS, offsets(("t", 1, 3), ("t", 0, 3)), "offsets.partition 1"),
    (methods.FETCH_OFFSETS, OFFSETS, offsets(("u", 0, 3), ("t", 1, 3)), "offsets.topic 'u'"),
    (methods.FETCH_OFFSETS, OFFSETS, offsets(("t", 0, -2), ("t", 1, 3)), "committed_offset -2"),
    (methods.CONSUMER_GROUP_HEARTBEAT, HEARTBEAT, beat(member_epoch=6), "member_epoch 6"),
    (methods.CONSUMER_GROUP_HEARTBEAT, HEARTBEAT, beat(member_id="n"), "member_id 'n'"),
    (
        methods.CONSUMER_GROUP_HEARTBEAT,
        HEARTBEAT,
        beat(heartbeat_interval_ms=0),
        "heartbeat_interval_ms 0, which is not within 1 to 3600000",
    ),
    (methods.CONSUMER_GROUP_HEARTBEAT, HEARTBEAT, beat(assignment=assigned(-5)), "partition -5"),
    (methods.CONSUMER_GROUP_HEARTBEAT, HEARTBEAT, beat(assignment=assigned(1, 1)), "comes twice"),
    (
        methods.CONSUMER_GROUP_HEARTBEAT,
        HEARTBEAT,
        beat(assignment=assigned(topic_id="")),
        "assignment.topic_id ''",
    ),
    (
        methods.INIT_PRODUCER_ID,
        transactions.InitProducerIdRequest(),
        transactions.InitProducerIdResponse(),
        "producer_id 0, which is below 1",
    ),
    (
        methods.INIT_PRODUCER_ID,
        transactions.InitProducerIdRequest(),
        transactions.InitProducerIdResponse(producer_id=1, producer_token=bytes(5_000)),
        "producer_token 'of 5,000 bytes'",
    ),
    (
        methods.END_TXN,
        END,
        transactions.EndTxnResponse(producer_id=3, producer_epoch=8),
        "producer_epoch 8, which is below 9",
    ),
    (
        methods.END_JOINT_TXN,
        transactions.EndJointTxnRequest(result=COMMIT),
        transactions.EndJointTxnResponse(result=ABORT),
        "result 2, which is not 1",
    ),
    (
        methods.GET_TRANSACTION_OUTCOME,
        outcomes.GetTransactionOutcomeRequest(),
        outcomes.GetTransactionOutcomeResponse(),
        "outcome 0, which is not known to this client",
    ),
    (
        methods.DESCRIBE_TRANSACTIONS,
        transactions.DescribeTransactionsRequest(transactional_ids=["a"]),
        transactions.DescribeTransactionsResponse(),
        "number of descriptions 0",
    ),
    (
        methods.DESCRIBE_GROUPS,
        group.DescribeGroupsRequest(group_ids=["a"]),
        group.DescribeGroupsResponse(groups=[group.GroupDescription(group_id="b")]),
        "groups.group_id 'b', which is not 'a'",
    ),
    (
        methods.COMMIT_OFFSETS,
        group.CommitOffsetsRequest(),
        group.CommitOffsetsResponse(errors=[group.OffsetPartitionError(topic="t")]),
        "errors.partition 0, which was not asked for",
    ),
    (
        methods.DESCRIBE_ACLS,
        acls.DescribeAclsRequest(),
        acls.DescribeAclsResponse(acls=[acls.AclBinding(resource_type=99)]),  # type: ignore[arg-type]  # none
        "acls.resource_type 99",
    ),
    (
        methods.DESCRIBE_CLIENT_QUOTAS,
        quotas.DescribeClientQuotasRequest(),
        quotas.DescribeClientQuotasResponse(
            client_quotas=[quotas.ClientQuota(limits={"request_rate": float("nan")})]
        ),
        "limits.request_rate nan, which is no limit",
    ),
]


@pytest.mark.parametrize(("method", "request_", "answer", "text"), WRONG)
def test_wrong_answer_is_refused_by_its_address_rpc_field_and_value(
    method: Method[Message, Message], request_: Message, answer: Message, text: str
) -> None:
    with pytest.raises(InvalidResponseError) as caught:
        check_answer(HERE, method, request_, answer)
    assert caught.value.message.startswith(f"{HERE} answered {method.name} with ")
    assert text in caught.value.message
    assert caught.value.details.keys() == {"address", "rpc", "field", "value"}


@pytest.mark.parametrize(
    ("method", "request_", "answer"),
    [
        (methods.METADATA, ALL_TOPICS, metadata(topics=[topic(1, 0)], instances=[instance()])),
        (methods.FETCH, FETCH, fetched((4, 3), (8, 1), last_stable_offset=9)),
        (methods.FETCH, FETCH, fetched((4, 3), (8, 1), batch_outcomes=[2, 4])),
        (methods.FETCH_OFFSETS, OFFSETS, offsets(("t", 0, -1), ("t", 1, 3))),
        (methods.CONSUMER_GROUP_HEARTBEAT, HEARTBEAT, beat(assignment=assigned(0, 1))),
        (methods.COUNT_RECORDS, COUNT, counted(next_offset=5, end_offset=5)),
        (methods.LIST_OFFSETS, LIST, listed(0, timestamp_ms=-1)),
        (
            methods.LIST_OPEN_TRANSACTIONS,
            participants.ListOpenTransactionsRequest(),
            open_at(participants.Participant(group_id="g")),
        ),
    ],
)
def test_answer_that_fits_is_taken(
    method: Method[Message, Message], request_: Message, answer: Message
) -> None:
    check_answer(HERE, method, request_, answer)


def test_long_values_are_cut_off_in_the_error() -> None:
    answer = beat(member_id="x" * 100_000)
    with pytest.raises(InvalidResponseError) as caught:
        check_answer(HERE, methods.CONSUMER_GROUP_HEARTBEAT, HEARTBEAT, answer)
    assert len(caught.value.message) < 500
