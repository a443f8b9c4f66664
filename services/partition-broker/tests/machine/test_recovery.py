"""An older copy of a broker's volume: what is seen of it after `semel recover`."""

import pytest
from broker_harness import (
    BROKER_ID,
    COMMITTED,
    OTHER,
    OTHER_BROKER_ID,
    PRODUCER,
    BrokerHarness,
    image,
    topic,
)
from msgspec.structs import replace

from semel_broker.journal.record_serde import BrokerSerde
from semel_broker.machine.records import LogEndMoved
from semel_broker.machine.recovery import RaisedLogs
from semel_common.errors import InvalidProducerEpochError, InvalidRequestError
from semel_runtime.cluster.metadata_image import ClusterImage, PartitionLeader

FLOOR = 1 << 50
ORDERS_TOPIC = topic("orders", BROKER_ID, BROKER_ID, OTHER_BROKER_ID)


def recover(broker: BrokerHarness, newest: ClusterImage | None = None) -> RaisedLogs:
    """Do what `semel recover` does, with the cluster's metadata as they are now."""
    broker.mark(*broker.run(broker.machine.all_aborted()))
    return broker.run(broker.machine.raise_logs(newest or image(1, ORDERS_TOPIC), FLOOR))


def test_an_open_transaction_aborts_and_cannot_go_on() -> None:
    broker = BrokerHarness()
    broker.append(count=2)
    recover(broker)
    assert broker.plan().aborted.covers(PRODUCER, 0, 0)
    with pytest.raises(InvalidProducerEpochError, match="below the fence 1"):
        broker.append(sequence=2)
    # The marker of a decision that was made since the copy finds nothing to commit.
    broker.commit(epoch=0)
    assert broker.plan().aborted.covers(PRODUCER, 0, 0)


def test_an_open_transaction_aborts_in_the_name_of_the_newest_coordinator() -> None:
    broker = BrokerHarness()
    broker.append()
    broker.commit(coordinator_epoch=5)
    open_at = broker.append(epoch=1)
    recover(broker)
    assert broker.plan().aborted.covers(PRODUCER, 1, open_at)


def test_the_next_offset_is_above_all_that_were_given() -> None:
    broker = BrokerHarness()
    broker.append(producer_id=OTHER, transactional=False)
    recover(broker)
    assert (broker.end_offset, broker.last_stable_offset) == (FLOOR, FLOOR)
    assert broker.append(epoch=1) == FLOOR
    broker.commit(epoch=1)
    assert broker.plan(isolation=COMMITTED).upto == FLOOR + 2


def test_logs_that_are_not_in_the_copy_begin_there_and_deleted_ones_are_dropped() -> None:
    broker = BrokerHarness()
    newest = image(2, topic("new", BROKER_ID, OTHER_BROKER_ID))
    assert recover(broker, newest) == RaisedLogs(kept=0, new=1, dropped=2)
    (log,) = broker.machine.descriptions.standing()
    assert (log.topic, log.log_start_offset, log.log_end_offset) == ("new", FLOOR, FLOOR)


def test_what_moves_away_is_given_up_first() -> None:
    broker = BrokerHarness()
    leaving = replace(topic("orders"), partitions=(PartitionLeader(BROKER_ID, 0, OTHER_BROKER_ID),))
    with pytest.raises(InvalidRequestError, match="semel topics move orders --partition 0 --canc"):
        recover(broker, image(2, leaving))
    stays = replace(topic("orders"), partitions=(PartitionLeader(BROKER_ID, 1),))
    assert recover(broker, image(3, stays)) == RaisedLogs(kept=1, new=0, dropped=1)


def test_what_moves_here_goes_on_where_the_copy_ends() -> None:
    broker = BrokerHarness()
    arriving = replace(
        topic("orders"), partitions=(PartitionLeader(OTHER_BROKER_ID, 3, BROKER_ID),)
    )
    assert recover(broker, image(2, arriving)) == RaisedLogs(kept=0, new=0, dropped=2)
    (copy,) = broker.run(broker.machine.moves.copies())
    assert copy.log_end_offset == 0


def test_the_same_state_is_read_back() -> None:
    broker = BrokerHarness()
    broker.append(producer_id=PRODUCER)
    recover(broker)
    for machine in (broker.replayed(), broker.restored()):
        assert list(machine.descriptions.standing()) == list(broker.machine.descriptions.standing())


def test_the_record_is_read_back() -> None:
    record = LogEndMoved(log_id=3, log_end_offset=FLOOR)
    assert BrokerSerde().decode(BrokerSerde().encode(record)) == record
