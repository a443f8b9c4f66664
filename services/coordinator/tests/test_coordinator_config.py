"""Settings of the coordinator."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from semel_coordinator.config import CoordinatorSettings
from semel_runtime.cluster.metadata_image import Layout
from semel_runtime.setting_meanings import describe_fields


def settings(**given: int | str) -> CoordinatorSettings:
    return CoordinatorSettings.model_validate({"data_dir": Path("data")} | given)


def test_the_defaults_are_those_of_kafka() -> None:
    read = settings()
    assert read.layout() == Layout(
        transaction_log_partitions=50, coordinators=1, group_partitions=50, group_coordinators=1
    )
    assert read.controller_limits().num_partitions == 1
    assert read.transaction_limits().transaction_max_timeout_ms == 900_000


def test_every_field_says_what_it_is_and_in_which_unit() -> None:
    describe_fields(CoordinatorSettings)
    for name, field in CoordinatorSettings.model_fields.items():
        assert field.description, name
        assert not name.endswith("_ms") or "millisecond" in field.description, name


def test_a_coordinator_that_is_not_the_controller_must_know_where_it_is() -> None:
    with pytest.raises(ValidationError, match="coordinator 1 has to know where coordinator 0 is"):
        settings(instance_id=1)
    assert settings(instance_id=1, controller="h:1").controller == "h:1"


@pytest.mark.parametrize(
    ("instances", "partitions"),
    [
        ("coordinators", "transaction_state_log_num_partitions"),
        ("group_coordinators", "offsets_topic_num_partitions"),
    ],
)
def test_every_instance_owns_a_partition(instances: str, partitions: str) -> None:
    settings(**{instances: 5, partitions: 5})
    with pytest.raises(ValidationError, match=f"{instances} is 6, more than {partitions}"):
        settings(**{instances: 6, partitions: 5})


@pytest.mark.parametrize(
    "option",
    [
        "coordinators",
        "group_coordinators",
        "transaction_state_log_num_partitions",
        "offsets_topic_num_partitions",
        "num_partitions",
        "topic_partitions_max",
        "partitions_max",
        "topics_max",
        "transaction_max_timeout_ms",
    ],
)
@pytest.mark.parametrize("value", [0, -1, 1 << 31])
def test_numbers_are_bounded(option: str, value: int) -> None:
    with pytest.raises(ValidationError, match=option):
        settings(**{option: value})
