"""Every field of every request is checked at the edge: field and value are named."""

import pytest
from group_harness import orders

from semel.common.v1 import participants_pb2 as participants
from semel.group.v1 import group_pb2 as wire
from semel_common.errors import InvalidGroupIdError, InvalidRequestError
from semel_group.machine.values import (
    Committer,
    GroupState,
    Heartbeat,
    NamedPartition,
    TopicName,
    TransactionResult,
)
from semel_group.rpc.committers import committer
from semel_group.rpc.consumer_group_heartbeat import checked_heartbeat
from semel_group.rpc.fetch_offsets import asked_partitions, reader
from semel_group.rpc.group_ids import group_ids
from semel_group.rpc.list_groups import group_states
from semel_group.rpc.new_offsets import new_offsets
from semel_group.rpc.txn_offset_commit import txn_commit
from semel_group.rpc.write_txn_markers import txn_markers

INT64_MAX = (1 << 63) - 1


# -- heartbeats ----------------------------------------------------------------------------------


def heartbeat(**fields: object) -> wire.ConsumerGroupHeartbeatRequest:
    message = wire.ConsumerGroupHeartbeatRequest(group_id="group", member_id="a", member_epoch=3)
    for name, value in fields.items():
        if isinstance(value, wire.Subscription | wire.OwnedPartitions):
            getattr(message, name).CopyFrom(value)
        else:
            setattr(message, name, value)
    return message


def owned(topic_id: str, *numbers: int) -> wire.OwnedPartitions:
    topic = participants.TopicPartitions(topic_id=topic_id, partitions=numbers)
    return wire.OwnedPartitions(topics=[topic])


def test_what_is_absent_from_a_heartbeat_is_as_before() -> None:
    assert checked_heartbeat(heartbeat()) == Heartbeat(
        group_id="group", member_id="a", member_epoch=3
    )


def test_a_whole_heartbeat_is_read() -> None:
    message = heartbeat(
        rebalance_timeout_ms=5,
        subscription=wire.Subscription(topics=["orders", "orders"]),
        owned=owned("orders-id", 1, 2),
        server_assignor="range",
    )
    assert checked_heartbeat(message) == Heartbeat(
        group_id="group",
        member_id="a",
        member_epoch=3,
        rebalance_timeout_ms=5,
        subscribed_topics=frozenset({"orders"}),
        owned=orders(1, 2),
        server_assignor="range",
    )


def test_nothing_is_not_the_same_as_absent() -> None:
    message = heartbeat(subscription=wire.Subscription(), owned=wire.OwnedPartitions())
    read = checked_heartbeat(message)
    assert read.subscribed_topics == frozenset()
    assert read.owned == frozenset()


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"member_id": ""}, "member_id is empty"),
        ({"member_id": "m" * 256}, "member_id 'm+…' has 256 characters: at most 255"),
        ({"member_epoch": -3}, "member_epoch is -3"),
        ({"member_epoch": -2}, "instance_id is empty: only a static member leaves"),
        ({"rebalance_timeout_ms": -1}, "rebalance_timeout_ms is -1: must be 0 to 2147483647$"),
        ({"server_assignor": "x" * 256}, "server_assignor 'x+…' has 256 characters"),
        ({"subscription": wire.Subscription(topics=[""])}, "subscription.topics is empty"),
        ({"subscription": wire.Subscription(topics=["t" * 250])}, "has 250 characters"),
        (
            {"subscription": wire.Subscription(topics=["t"] * 1_001)},
            "subscription.topics has 1001 entries",
        ),
        ({"owned": owned("", 1)}, "owned.topics.topic_id is empty"),
        ({"owned": owned("t" * 65, 1)}, "has 65 characters: at most 64"),
        ({"owned": owned("t", -1)}, "owned.topics.partitions is -1"),
        (
            {"owned": wire.OwnedPartitions(topics=[participants.TopicPartitions()] * 100_001)},
            "owned.topics has 100001 entries",
        ),
        (
            {"owned": owned("t", *range(100_001))},
            "owned.topics.partitions has 100001 entries",
        ),
        ({"member_epoch": 0}, "rebalance_timeout_ms is 0: a member that joins must give one"),
        (
            {"member_epoch": 0, "rebalance_timeout_ms": 1},
            "subscription is absent: a member that joins must give one",
        ),
        (
            {
                "member_epoch": 0,
                "rebalance_timeout_ms": 1,
                "subscription": wire.Subscription(),
                "owned": owned("t", 1),
            },
            "owned has 1 partitions: a member that joins owns none",
        ),
        (
            {
                "member_epoch": 0,
                "rebalance_timeout_ms": 1,
                "subscription": wire.Subscription(),
                "takes_over": True,
            },
            "takes_over is set with member_epoch 0 and instance_id ''",
        ),
        (
            {"member_epoch": 3, "instance_id": "s", "takes_over": True},
            "takes_over is set with member_epoch 3",
        ),
    ],
)
def test_a_wrong_heartbeat_is_refused(fields: dict[str, object], complaint: str) -> None:
    with pytest.raises(InvalidRequestError, match=complaint):
        checked_heartbeat(heartbeat(**fields))


@pytest.mark.parametrize("group_id", ["", "g" * 256])
def test_a_wrong_group_id_is_refused_everywhere(group_id: str) -> None:
    """C-180."""
    with pytest.raises(InvalidGroupIdError, match="characters: must be 1 to 255"):
        checked_heartbeat(heartbeat(group_id=group_id))
    with pytest.raises(InvalidGroupIdError):
        committer(wire.CommitOffsetsRequest(group_id=group_id, member_epoch=-1))
    with pytest.raises(InvalidGroupIdError):
        reader(wire.FetchOffsetsRequest(group_id=group_id))
    with pytest.raises(InvalidGroupIdError):
        group_ids([group_id])
    with pytest.raises(InvalidGroupIdError):
        txn_markers(markers(marker(group_ids=[group_id])))


# -- offsets -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member_id", "epoch"), [("", 0), ("", 3), ("a", -1), ("a", -2), ("m" * 256, 1)]
)
def test_a_committer_has_both_member_id_and_epoch_or_none(member_id: str, epoch: int) -> None:
    message = wire.CommitOffsetsRequest(group_id="g", member_id=member_id, member_epoch=epoch)
    with pytest.raises(InvalidRequestError, match="member_"):
        committer(message)


def test_committers_are_members_or_without_a_name() -> None:
    member = wire.CommitOffsetsRequest(group_id="g", member_id="a", member_epoch=2)
    without_member = wire.CommitOffsetsRequest(group_id="g", member_epoch=-1)
    assert committer(member) == Committer(group_id="g", member_id="a", member_epoch=2)
    assert committer(without_member) == Committer(group_id="g")


def test_readers_without_a_member_id_have_no_name() -> None:
    assert reader(wire.FetchOffsetsRequest(group_id="g")) == Committer(group_id="g")
    member = wire.FetchOffsetsRequest(group_id="g", member_id="a", member_epoch=2)
    assert reader(member).member_epoch == 2


def commit_topic(**fields: int | str) -> wire.OffsetCommitTopic:
    topic = {name: fields.pop(name) for name in ("topic", "topic_id") if name in fields}
    offset = wire.OffsetCommitPartition()
    for name, value in fields.items():
        setattr(offset, name, value)
    return wire.OffsetCommitTopic(**topic, partitions=[offset])  # type: ignore[arg-type]  # texts


@pytest.mark.parametrize(
    ("topics", "complaint"),
    [
        ([], "topics.partitions has 0 entries: must be 1"),
        ([wire.OffsetCommitTopic(topic="t")], "topics.partitions has 0 entries"),
        ([commit_topic()], "topic and topic_id are empty"),
        ([commit_topic(topic="t" * 250)], "topic 't+…' has 250 characters"),
        ([commit_topic(topic_id="t" * 65)], "topic_id 't+…' has 65 characters"),
        ([commit_topic(topic="t", partition=-1)], "partition is -1"),
        ([commit_topic(topic="t", committed_offset=-1)], "committed_offset is -1"),
        (
            [
                wire.OffsetCommitTopic(
                    topic="t", partitions=[wire.OffsetCommitPartition()] * 100_001
                )
            ],
            "topics.partitions has 100001 entries",
        ),
    ],
)
def test_wrong_offsets_are_refused(topics: list[wire.OffsetCommitTopic], complaint: str) -> None:
    with pytest.raises(InvalidRequestError, match=complaint):
        new_offsets(topics)


def test_all_partitions_are_asked_for_without_names() -> None:
    assert asked_partitions(wire.FetchOffsetsRequest(all_partitions=True)) is None
    topic = wire.OffsetFetchTopic(topic="t", partitions=[1, 0])
    assert asked_partitions(wire.FetchOffsetsRequest(topics=[topic])) == [
        NamedPartition(TopicName("t", ""), 1),
        NamedPartition(TopicName("t", ""), 0),
    ]
    both = wire.FetchOffsetsRequest(all_partitions=True, topics=[topic])
    with pytest.raises(InvalidRequestError, match="topics has 1 entries: must be 0 to 0"):
        asked_partitions(both)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"transactional_id": ""}, "transactional_id is empty"),
        ({"producer_id": 0}, "producer_id is 0"),
        ({"producer_epoch": -1}, "producer_epoch is -1"),
        ({"producer_epoch": INT64_MAX}, "producer_epoch is 9223372036854775807"),
        ({"base_sequence": -1}, "base_sequence is -1"),
    ],
)
def test_wrong_transactions_are_refused(fields: dict[str, int | str], complaint: str) -> None:
    message = wire.TxnOffsetCommitRequest(
        transactional_id="t",
        producer_id=1,
        group_id="g",
        member_epoch=-1,
        topics=[commit_topic(topic="t")],
    )
    assert txn_commit(message).transaction == (1, 0)
    for name, value in fields.items():
        setattr(message, name, value)
    with pytest.raises(InvalidRequestError, match=complaint):
        txn_commit(message)


# -- outcomes and operators ----------------------------------------------------------------------


def marker(
    *,
    producer_id: int = 1,
    producer_epoch: int = 0,
    result: int = 1,
    coordinator_epoch: int = 0,
    group_ids: list[str] | None = None,
) -> participants.TxnMarker:
    return participants.TxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        result=result,  # type: ignore[arg-type]  # also numbers that are none
        coordinator_epoch=coordinator_epoch,
        participants=participants.Participants(group_ids=group_ids or ["g"]),
    )


def markers(*each: participants.TxnMarker) -> participants.WriteTxnMarkersRequest:
    return participants.WriteTxnMarkersRequest(cluster_id="c", markers=each)


def test_markers_are_read() -> None:
    (read,) = txn_markers(markers(marker(result=2)))
    assert read.result is TransactionResult.ABORT
    assert read.group_ids == ("g",)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (marker(producer_id=0), "producer_id is 0"),
        (marker(producer_epoch=-1), "producer_epoch is -1"),
        (marker(result=0), "result has the unknown value 0"),
        (marker(result=3), "result has the unknown value 3"),
        (marker(coordinator_epoch=-1), "coordinator_epoch is -1"),
        (marker(group_ids=["g"] * 10_001), "group_ids has 10001 entries"),
    ],
)
def test_wrong_markers_are_refused(wrong: participants.TxnMarker, complaint: str) -> None:
    with pytest.raises(InvalidRequestError, match=complaint):
        txn_markers(markers(wrong))


def test_states_are_read_and_none_means_all() -> None:
    assert group_states(wire.ListGroupsRequest()) == frozenset(GroupState)
    asked = wire.ListGroupsRequest(states=[wire.GROUP_STATE_EMPTY, wire.GROUP_STATE_STABLE])
    assert group_states(asked) == {GroupState.EMPTY, GroupState.STABLE}
    with pytest.raises(InvalidRequestError, match="states has the unknown value 0"):
        group_states(wire.ListGroupsRequest(states=[wire.GROUP_STATE_UNSPECIFIED]))
    with pytest.raises(InvalidRequestError, match="states has 4 entries: must be 0 to 3"):
        group_states(wire.ListGroupsRequest(states=[wire.GROUP_STATE_EMPTY] * 4))


def test_so_many_groups_may_be_described_at_once() -> None:
    with pytest.raises(InvalidRequestError, match="group_ids has 10001 entries"):
        group_ids(["g"] * 10_001)


def test_numbers_are_the_protocol_s() -> None:
    assert {each.name: each.value for each in GroupState} == {
        name.removeprefix("GROUP_STATE_"): number
        for name, number in wire.GroupState.items()
        if number
    }
    assert {each.name: each.value for each in TransactionResult} == {
        name.removeprefix("TRANSACTION_RESULT_"): number
        for name, number in participants.TransactionResult.items()
        if number
    }
