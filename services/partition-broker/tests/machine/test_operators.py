"""A broker's machine as operators see it: open transactions, producers, holders of the LSO."""

from broker_harness import ORDERS, OTHER, PRODUCER, BrokerHarness

from semel_broker.machine.descriptions import PartitionProducers
from semel_common.errors import NotLeaderOrFollowerError
from semel_common.ids import TopicPartition, producer_id_of
from semel_runtime.participant.inquiry import OpenSince, OpenTransactionAt

P0, P1 = TopicPartition(ORDERS, 0), TopicPartition(ORDERS, 1)
THIRD = producer_id_of(5, 1)


def open_since(broker: BrokerHarness, age_ms: int = 0, limit: int = 9) -> list[object]:
    since_ms = broker.now_ms - age_ms
    return [
        *broker.run(
            broker.machine.transactions.open_transactions(open_since_ms=since_ms, limit=limit)
        )
    ]


def described(broker: BrokerHarness, limit: int = 9) -> PartitionProducers:
    (answer,) = broker.run(broker.machine.descriptions.describe_producers([P0], limit))
    assert isinstance(answer, PartitionProducers)
    return answer


def test_open_transactions_are_listed_the_oldest_first(broker: BrokerHarness) -> None:
    broker.append(partition=1)
    start_ms = broker.now_ms
    broker.now_ms += 10
    broker.append(partition=0, producer_id=OTHER)
    older = OpenSince(start_ms, OpenTransactionAt(P1, PRODUCER, 0), 0)
    newer = OpenSince(start_ms + 10, OpenTransactionAt(P0, OTHER, 0), 0)
    assert open_since(broker) == [older, newer]
    assert open_since(broker, age_ms=10) == [older]
    assert open_since(broker, limit=1) == [older]
    broker.commit(partition=1)
    assert open_since(broker) == [newer]


def test_the_holder_of_the_last_stable_offset_comes_first(broker: BrokerHarness) -> None:
    broker.append(producer_id=THIRD, transactional=False)
    broker.append(producer_id=OTHER)
    broker.now_ms += 1
    broker.append(producer_id=PRODUCER)
    found = described(broker)
    assert (found.last_stable_offset, found.high_watermark, found.producer_count) == (1, 3, 3)
    assert [producer.state.producer_id for producer in found.producers] == [OTHER, PRODUCER, THIRD]
    (held,) = found.producers[0].open_transactions
    assert (held.first_offset, held.start_ms) == (1, broker.now_ms - 1)
    broker.commit(producer_id=OTHER)
    found = described(broker)
    assert [producer.state.producer_id for producer in found.producers] == [PRODUCER, OTHER, THIRD]
    assert described(broker, limit=1).producers == found.producers[:1]


def test_a_partition_that_is_led_elsewhere_is_an_error_of_its_own(broker: BrokerHarness) -> None:
    asked = [TopicPartition(ORDERS, 2), P0]
    refused, answered = broker.run(broker.machine.descriptions.describe_producers(asked, 1))
    assert isinstance(refused, NotLeaderOrFollowerError)
    assert isinstance(answered, PartitionProducers)
