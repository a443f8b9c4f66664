"""The logs that need compaction, and the state that the machine forgets after a pass."""

import pytest
from broker_harness import (
    BROKER_ID,
    OTHER,
    OTHER_BROKER_ID,
    PLAIN,
    PRODUCER,
    BrokerHarness,
    entities,
    header,
    image,
    topic,
)
from msgspec.structs import replace

from semel_broker.machine.compaction import CompactionPlan
from semel_broker.machine.records import LogCompacted
from semel_runtime.cluster.metadata_image import ClusterImage


def table(version: int = 2, **options: str) -> ClusterImage:
    """Metadata in which `orders` is compacted; another broker leads partition 2."""
    configs = {"cleanup.policy": "compact"}
    configs |= {name.replace("_", "."): value for name, value in options.items()}
    orders = topic("orders", BROKER_ID, BROKER_ID, OTHER_BROKER_ID)
    return image(version, replace(orders, configs=tuple(sorted(configs.items()))))


@pytest.fixture
def broker() -> BrokerHarness:
    harness = BrokerHarness()
    harness.apply_metadata(table())
    return harness


def plans(broker: BrokerHarness) -> list[CompactionPlan]:
    return broker.run(broker.machine.compaction.logs_to_compact())


def compacted(
    broker: BrokerHarness, upto: int, records_left: int, *, size_bytes_left: int = 0
) -> None:
    """Note the end of a pass over partition 0."""
    log_id = broker.plan(upto).log_id
    end = LogCompacted(
        log_id=log_id, upto=upto, records_left=records_left, size_bytes_left=size_bytes_left
    )
    broker.run(broker.machine.compaction.compacted(end))


def test_a_pass_may_go_up_to_the_last_stable_offset(broker: BrokerHarness) -> None:
    broker.append(producer_id=PLAIN, count=3)
    broker.append()
    broker.append(producer_id=PLAIN)

    (plan,) = plans(broker)

    assert (plan.log_start_offset, plan.dirty_offset, plan.last_stable_offset) == (0, 0, 3)


def test_only_what_is_dirty_and_compacted_and_led_here_is_planned(broker: BrokerHarness) -> None:
    assert plans(broker) == []
    broker.append(producer_id=PLAIN)
    assert len(plans(broker)) == 1
    compacted(broker, 1, 1)
    assert plans(broker) == []
    broker.append(producer_id=PLAIN)
    assert len(plans(broker)) == 1

    broker.apply_metadata(table(3, cleanup_policy="delete"))
    assert plans(broker) == []
    broker.apply_metadata(table(4, cleanup_policy="compact,delete"))
    assert len(plans(broker)) == 1
    broker.apply_metadata(image(5, topic("orders", OTHER_BROKER_ID, BROKER_ID, OTHER_BROKER_ID)))
    assert plans(broker) == []


def test_the_dirtiest_log_is_first(broker: BrokerHarness) -> None:
    broker.append(producer_id=PLAIN, count=8)
    compacted(broker, 8, 8)
    broker.append(producer_id=PLAIN)
    broker.append(producer_id=PLAIN, partition=1)

    assert [plan.partition.partition for plan in plans(broker)] == [1, 0]


def test_dirt_is_counted_in_records(broker: BrokerHarness) -> None:
    broker.append(producer_id=PLAIN, count=10)
    compacted(broker, 10, 3)
    broker.append(producer_id=PLAIN, count=3)
    (plan,) = plans(broker)
    assert plan.dirty_ratio(13) == 0.5
    assert not plan.is_due(13, overdue=False)
    assert plan.is_due(13, overdue=True)
    broker.append(producer_id=PLAIN)
    (plan,) = plans(broker)
    assert plan.is_due(14, overdue=False)
    assert plan.dirty_ratio(10) == plan.dirty_ratio(9) == 0
    assert not plan.is_due(10, overdue=True)


def test_what_lies_below_the_log_start_is_not_dirty(broker: BrokerHarness) -> None:
    broker.apply_metadata(table(3, cleanup_policy="compact,delete"))
    broker.append(producer_id=PLAIN, count=10)
    broker.delete_records(7)

    (plan,) = plans(broker)

    assert (plan.log_start_offset, plan.dirty_offset) == (7, 7)


def test_a_pass_lets_the_index_forget_the_transactions_that_it_has_passed(
    broker: BrokerHarness,
) -> None:
    broker.append()
    broker.abort()
    broker.append(epoch=1)
    broker.append(producer_id=OTHER)
    broker.abort(epoch=1)  # Its marker lies above the last stable offset.
    before = broker.plan()

    compacted(broker, broker.last_stable_offset, 2)

    assert broker.plan().aborted.covers(PRODUCER, 1, 2)
    assert not broker.plan().aborted.covers(PRODUCER, 0, 0)
    assert before.aborted.covers(PRODUCER, 0, 0), "a read under way may have its batch"


def test_how_far_a_log_is_compacted_outlives_a_restart(broker: BrokerHarness) -> None:
    broker.append(producer_id=PLAIN, count=4)
    compacted(broker, 4, 2)
    for machine in (broker.replayed(), broker.restored()):
        assert entities(machine) == broker.entities()
        assert machine.compaction.logs_to_compact().response == []


def test_the_end_of_a_pass_over_a_deleted_log_is_of_no_interest(broker: BrokerHarness) -> None:
    broker.append(producer_id=PLAIN)
    (plan,) = plans(broker)
    assert broker.machine.compaction.is_compacted(plan.log_id)
    broker.apply_metadata(image(9))

    assert not broker.machine.compaction.is_compacted(plan.log_id)
    end = LogCompacted(log_id=plan.log_id, upto=1, records_left=1, size_bytes_left=1)
    assert not broker.machine.compaction.compacted(end).records


def test_retention_by_size_counts_what_compaction_has_left(broker: BrokerHarness) -> None:
    broker.apply_metadata(
        table(3, cleanup_policy="compact,delete", retention_bytes="1000", segment_ms="1")
    )
    for _ in range(4):
        broker.produce(header(producer_id=PLAIN, size_bytes=400))
        broker.now_ms += 1
    segments = broker.machine._logs.log(broker.plan().log_id).segments
    assert segments.total_bytes == 4 * 500

    compacted(broker, 3, 2, size_bytes_left=450)

    assert [segment.size_bytes for segment in segments] == [150, 150, 150, 500]
    assert segments.total_bytes == 950
    broker.retain()
    assert broker.plan().log_start_offset == 0
    compacted(broker, 3, 2, size_bytes_left=9_999)
    assert segments.total_bytes == 950
