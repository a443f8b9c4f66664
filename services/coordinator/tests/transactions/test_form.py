"""The form of requests: every field of every one, and the limits."""

import pytest
from google.protobuf.message import Message
from transactions_requests import (
    add,
    ask,
    complete,
    end,
    end_with,
    init,
    inquire,
    inquire_of,
    offsets,
    prepare,
    prepare_with,
    topics,
)
from transactions_service_harness import Cluster

from semel.common.v1 import participants_pb2
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import (
    InvalidRequestError,
    InvalidTransactionTimeoutError,
    SemelError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from semel_common.ids import TopicPartition
from semel_coordinator.transactions.machine import TransactionLimits

ONGOING = wire.TRANSACTION_STATE_ONGOING


LIMITS = TransactionLimits(
    participants_max=2,
    transactional_id_length_max=20,
    instance_id_length_max=20,
    topic_id_length_max=20,
    group_id_length_max=20,
    inquiries_max=2,
    describe_max=2,
)
LONG = "x" * 21

BAD_FORM: list[tuple[Message, str]] = [
    (init(transactional_id=""), "transactional_id is empty"),
    (init(transactional_id=LONG), "transactional_id 'x+' has 21 characters: at most 20"),
    (init(instance_id=""), "instance_id is empty"),
    (init(instance_id=LONG), "instance_id 'x+' has 21 characters"),
    (init(init_number=0), "init_number is 0: must be 1 to"),
    (init(wait=7), "wait has the unknown value 7"),
    (add(transactional_id=""), "transactional_id is empty"),
    (add(producer_id=0), "producer_id is 0: must be 1 to"),
    (add(producer_id=-1), "producer_id is -1"),
    (add(producer_epoch=-1), "producer_epoch is -1: must be 0 to"),
    (add(topics=[]), "topics has 0 entries: must be 1 to 2"),
    (add(topics=topics()), "topics has 0 entries"),
    (add(topics=topics(0, 1, 2)), "topics has 3 entries"),
    (add(topics=topics(0, -3)), r"topics\[0\].partitions is -3: must be 0 to"),
    (add(topics=topics(0, topic_id="")), r"topics\[0\].topic_id is empty"),
    (add(topics=topics(0, topic_id=LONG)), r"topics\[0\].topic_id 'x+' has 21"),
    (offsets(transactional_id=""), "transactional_id is empty"),
    (offsets(producer_id=0), "producer_id is 0"),
    (offsets(group_id=""), "group_id is empty"),
    (offsets(group_id=LONG), "group_id 'x+' has 21 characters"),
    (end(transactional_id=""), "transactional_id is empty"),
    (end(producer_id=0), "producer_id is 0"),
    (end(producer_epoch=-2), "producer_epoch is -2"),
    (end(result=0), "result has the unknown value 0"),
    (end(wait=9), "wait has the unknown value 9"),
    (end_with(topics=topics(0, 1), group_ids=["g"]), "participants has 3 entries"),
    (end_with(topics=topics(-1)), r"participants.topics\[0\].partitions is -1"),
    (end_with(group_ids=["g", ""]), r"participants.group_ids\[1\] is empty"),
    (prepare(transactional_id=""), "transactional_id is empty"),
    (prepare(producer_id=0), "producer_id is 0"),
    (prepare(producer_epoch=-2), "producer_epoch is -2"),
    (prepare_with(topics=topics(0, 1), group_ids=["g"]), "participants has 3 entries"),
    (complete(transactional_id=""), "transactional_id is empty"),
    (complete(producer_id=0), "producer_id is 0"),
    (complete(prepared_epoch=-2), "prepared_epoch is -2"),
    (complete(producer_epoch=-2), "producer_epoch is -2"),
    (complete(result=0), "result has the unknown value 0"),
    (complete(wait=9), "wait has the unknown value 9"),
    (inquire(producer_id=0), r"inquiries\[0\].producer_id is 0"),
    (inquire(producer_epoch=-1), r"inquiries\[0\].producer_epoch is -1"),
    (inquire_of(), r"inquiries\[0\].participant is not given"),
    (inquire_of(group_id=""), r"inquiries\[0\].participant.group_id is empty"),
    (
        inquire_of(topic_partition=participants_pb2.TopicPartition(topic_id="")),
        r"inquiries\[0\].participant.topic_id is empty",
    ),
    (
        inquire_of(topic_partition=participants_pb2.TopicPartition(topic_id="t", partition=-1)),
        r"inquiries\[0\].participant.partition is -1",
    ),
    (
        wire.InquireTransactionsRequest(
            cluster_id="test-cluster", inquiries=list(inquire().inquiries) * 3
        ),
        "inquiries has 3 entries: must be 0 to 2",
    ),
    (
        wire.DescribeTransactionsRequest(transactional_ids=["a", ""]),
        r"transactional_ids\[1\] is empty",
    ),
    (
        wire.DescribeTransactionsRequest(transactional_ids=["a", "b", "c"]),
        "transactional_ids has 3 entries: must be 0 to 2",
    ),
    (
        wire.ListTransactionsRequest(states=[ONGOING, wire.TRANSACTION_STATE_UNSPECIFIED]),
        r"states\[1\] has the unknown value 0",
    ),
    (
        wire.ListTransactionsRequest(states=[ONGOING] * 8),
        "states has 8 entries: must be 0 to 7",
    ),
    (
        wire.ListTransactionsRequest(producer_ids=[7, -1]),
        r"producer_ids\[1\] is -1: must be 1 to",
    ),
    (
        wire.ListTransactionsRequest(running_longer_than_ms=-5),
        "running_longer_than_ms is -5: must be 0 to",
    ),
    (
        wire.ListTransactionsRequest(transactional_id_pattern="a(b"),
        r"transactional_id_pattern 'a\(b' is not a pattern that RE2 takes: missing \)",
    ),
    (
        wire.ListTransactionsRequest(transactional_id_pattern="a" * 256),
        "transactional_id_pattern 'a+…' has 256 characters",
    ),
]


@pytest.mark.parametrize(
    ("request_", "message"),
    BAD_FORM,
    ids=[f"{number} {type(each).__name__}" for number, (each, _) in enumerate(BAD_FORM)],
)
async def test_bad_form_names_field_and_value_and_stores_nothing(
    cluster: Cluster, request_: Message, message: str
) -> None:
    """C-030, C-056, C-081."""
    async with cluster.coordinator(limits=LIMITS) as coordinator:
        before = coordinator.runner.stats().records
        with pytest.raises(InvalidRequestError, match=message) as caught:
            await ask(coordinator, request_)
        assert caught.value.details["field"] in message.replace("\\", "")
        assert coordinator.runner.stats().records == before


async def test_a_time_out_that_is_not_possible_has_an_error_of_its_own(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        with pytest.raises(InvalidTransactionTimeoutError, match="transaction_timeout_ms is -1"):
            await ask(coordinator, init(transaction_timeout_ms=-1))


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (topics(0, topic_id="topic-x"), UnknownTopicIdError),
        (topics(0, 2), UnknownTopicOrPartitionError),
    ],
)
async def test_an_unknown_partition_is_refused_and_no_other_is_registered(
    cluster: Cluster, bad: list[participants_pb2.TopicPartitions], error: type[SemelError]
) -> None:
    """C-063: all are registered, or none."""
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        with pytest.raises(error):
            await ask(
                coordinator,
                add(producer_id=key.producer_id, topics=[*topics(0, topic_id="topic-b"), *bad]),
            )
        (described,) = coordinator.machine.queries.describe_transactions(["app"]).response
        assert [transaction.state for transaction in described.transactions] == ["Empty"]


async def test_an_abort_of_too_many_participants_goes_on_with_fewer(cluster: Cluster) -> None:
    """Participants that are left out ask by themselves; the client must not be stuck."""
    async with cluster.coordinator(limits=LIMITS, send=False) as coordinator:
        key = await coordinator.init()
        those = [TopicPartition("topic-a", number) for number in range(5)]
        await coordinator.end(key, *those, commit=False)
        (decided,) = coordinator.machine.markers.pending()
        assert list(decided.aborting) == those[:2]
