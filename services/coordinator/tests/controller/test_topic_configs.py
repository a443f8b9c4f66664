"""Options of topics at the controller: set at creation or later, one by one, or not at all."""

import pytest
from controller_harness import ControllerHarness

from semel_common.errors import InvalidConfigError, UnknownTopicOrPartitionError
from semel_coordinator.controller.machine.records import TopicRecord
from semel_runtime.cluster.topic_options import CleanupPolicy


@pytest.fixture
def controller() -> ControllerHarness:
    harness = ControllerHarness()
    harness.brokers(1)
    return harness


def test_a_topic_is_created_with_its_options(controller: ControllerHarness) -> None:
    given = (("retention.ms", "1000"), ("cleanup.policy", "compact"))
    topic = controller.create("prices", configs=given)
    assert topic.configs == (("cleanup.policy", "compact"), ("retention.ms", "1000"))
    assert controller.image.topics[0].config.cleanup_policy is CleanupPolicy.COMPACT


def test_a_topic_with_an_option_that_cannot_be_is_not_created(
    controller: ControllerHarness,
) -> None:
    with pytest.raises(InvalidConfigError, match=r"retention\.ms is 'soon'"):
        controller.create("prices", configs=(("retention.ms", "soon"),))


def test_an_option_that_is_not_named_stays_as_it_is(controller: ControllerHarness) -> None:
    controller.create("orders", configs=(("retention.ms", "1000"), ("segment.ms", "10")))
    topic = controller.alter("orders", "segment.ms", retention_bytes=5000)
    assert topic.configs == (("retention.bytes", "5000"), ("retention.ms", "1000"))
    assert controller.records == [TopicRecord(version=4, topic=topic)]
    assert controller.image.topics == (topic,)


def test_setting_what_is_set_already_changes_nothing(controller: ControllerHarness) -> None:
    controller.create("orders")
    before = controller.alter("orders", retention_ms=5)
    assert controller.alter("orders", retention_ms=5) == before
    assert controller.records == []


def test_validating_a_change_changes_nothing(controller: ControllerHarness) -> None:
    known = controller.create("orders")
    changed = controller.alter("orders", retention_ms=5, validate_only=True)
    assert changed.configs == (("retention.ms", "5"),)
    assert controller.image.topics == (known,)


def test_options_of_a_topic_that_is_not_there_cannot_be_changed(
    controller: ControllerHarness,
) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="'orders'"):
        controller.alter("orders", retention_ms=5)


def test_who_leads_how_much_is_not_counted_twice(controller: ControllerHarness) -> None:
    controller.create("orders", 3)
    controller.alter("orders", retention_ms=5)
    assert controller.machine._state.partition_count == 3
