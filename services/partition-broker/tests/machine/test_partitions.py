"""Which partitions the broker serves: it follows the cluster's metadata."""

import pytest
from broker_harness import (
    BROKER_ID,
    COMMITTED,
    ORDERS,
    PLAIN,
    BrokerHarness,
    at,
    header,
    image,
    outcome,
    topic,
)

from semel_broker.machine.records import LogDropped, LogState
from semel_broker.machine.values import PartitionName
from semel_common.errors import (
    InconsistentClusterIdError,
    InvalidRequestError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    SemelError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)


def test_partitions_led_here_are_created_and_numbered(broker: BrokerHarness) -> None:
    created = [record for _, record in broker.journal if isinstance(record, LogState)]
    assert [(each.log_id, each.topic, each.partition) for each in created] == [
        (0, "orders", 0),
        (1, "orders", 1),
    ]


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        pytest.param(at(2), NotLeaderOrFollowerError, id="led elsewhere"),
        pytest.param(at(3), UnknownTopicOrPartitionError, id="no such partition"),
        pytest.param(at(0, "gone"), UnknownTopicOrPartitionError, id="no such topic"),
        pytest.param(
            PartitionName(topic="", topic_id="id-gone", partition=0),
            UnknownTopicIdError,
            id="no such topic id",
        ),
        pytest.param(
            PartitionName(topic="", topic_id=ORDERS, partition=2),
            NotLeaderOrFollowerError,
            id="led elsewhere, by id",
        ),
        pytest.param(
            PartitionName(topic="other", topic_id=ORDERS, partition=0),
            InvalidRequestError,
            id="name and id differ",
        ),
    ],
)
def test_a_log_that_is_not_served_here_is_refused_by_every_call(
    broker: BrokerHarness, name: PartitionName, refusal: type[SemelError]
) -> None:
    with pytest.raises(refusal):
        broker.produce(header(), name=name)
    with pytest.raises(refusal):
        broker.plan(name=name)
    (listed,) = broker.run(broker.machine.reads.list_offsets([name], COMMITTED))
    assert isinstance(listed, refusal)


def test_an_error_that_is_a_value_holds_on_to_nothing(broker: BrokerHarness) -> None:
    located = broker.run(broker.machine.reads.list_offsets([at(9)], COMMITTED))
    marked = broker.mark(outcome(partition=9, commit=True))
    for refusal in (*located, *marked):
        assert isinstance(refusal, SemelError)
        assert refusal.__traceback__ is None


def test_name_and_id_may_both_be_given(broker: BrokerHarness) -> None:
    both = PartitionName(topic="orders", topic_id=ORDERS, partition=1)
    assert broker.produce(header(), name=both).log_id == 1
    assert broker.plan(name=both).high_watermark == 1


@pytest.mark.parametrize("offset", [-1, 4])
def test_an_offset_out_of_range_is_refused_with_the_range(
    broker: BrokerHarness, offset: int
) -> None:
    broker.append(producer_id=PLAIN, count=3)
    with pytest.raises(OffsetOutOfRangeError) as caught:
        broker.plan(offset)
    assert caught.value.details == {"log_start_offset": "0", "high_watermark": "3"}


def test_the_end_of_the_log_may_be_read(broker: BrokerHarness) -> None:
    broker.append(producer_id=PLAIN, count=3)
    assert broker.plan(3).upto == 3


def test_an_image_that_is_not_newer_changes_nothing(broker: BrokerHarness) -> None:
    known = broker.machine.cluster.image
    assert known is not None
    assert not broker.apply_metadata(known)
    assert broker.append() == 0


def test_the_image_of_another_cluster_is_refused(broker: BrokerHarness) -> None:
    with pytest.raises(InconsistentClusterIdError):
        broker.apply_metadata(image(2, cluster_id="cluster-b"))


def test_a_deleted_topic_is_dropped_and_its_batches_wait_for_the_purge(
    broker: BrokerHarness,
) -> None:
    broker.append()
    assert broker.apply_metadata(image(2))
    with pytest.raises(UnknownTopicOrPartitionError):
        broker.append(sequence=1)
    assert broker.run(broker.machine.dropped_logs()) == (0, 1)
    broker.run(broker.machine.purged(0))
    assert broker.run(broker.machine.dropped_logs()) == (1,)


def test_a_topic_made_again_is_another_topic(broker: BrokerHarness) -> None:
    broker.append()
    broker.apply_metadata(image(2, topic("orders", BROKER_ID, topic_id="id-second")))
    dropped = [record for _, record in broker.journal if isinstance(record, LogDropped)]
    assert [each.log_id for each in dropped] == [0, 1]
    assert broker.plan().log_id == 2
    assert broker.end_offset == 0


def test_log_ids_are_never_given_twice(broker: BrokerHarness) -> None:
    broker.apply_metadata(image(2))
    for log_id in (0, 1):
        broker.run(broker.machine.purged(log_id))
    again = broker.restored()
    broker.machine = again
    broker.apply_metadata(image(3, topic("orders", BROKER_ID)))
    assert broker.plan().log_id == 2


def test_partitions_that_a_topic_gets_are_created_beside_those_it_has(
    broker: BrokerHarness,
) -> None:
    broker.append(count=3)
    broker.apply_metadata(image(2, topic("orders", BROKER_ID, BROKER_ID, BROKER_ID)))
    assert broker.end_offset == 3
    assert broker.append(partition=2) == 0


def test_an_option_that_is_reset_holds_no_longer(broker: BrokerHarness) -> None:
    orders = topic("orders", BROKER_ID, configs=(("retention.bytes", "0"),))
    broker.apply_metadata(image(2, orders))
    broker.apply_metadata(image(3, topic("orders", BROKER_ID), topic("more", BROKER_ID)))
    broker.append(producer_id=PLAIN)
    broker.retain()
    assert broker.start_offset == 0


def test_a_reader_that_waits_is_told_of_data_and_of_a_dropped_log(broker: BrokerHarness) -> None:
    def readable() -> bool:
        return broker.machine.reads.readable_beyond(0, COMMITTED, 0)

    assert not readable()
    broker.append()
    assert not readable()
    broker.commit()
    assert readable()
    broker.apply_metadata(image(2))
    assert readable()
