"""Settings of the group coordinator: Kafka's names, and conflicts that are refused."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from semel_group.config import GroupSettings


def settings(**values: object) -> GroupSettings:
    return GroupSettings.model_validate(
        {"data_dir": Path("data"), "controller": "127.0.0.1:1", **values}
    )


def test_sessions_are_settings_with_kafka_s_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMEL_DATA_DIR", "data")
    monkeypatch.setenv("SEMEL_CONTROLLER", "127.0.0.1:1")
    monkeypatch.setenv("SEMEL_GROUP_CONSUMER_SESSION_TIMEOUT_MS", "3000")
    monkeypatch.setenv("SEMEL_GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS", "300")
    read = GroupSettings()  # type: ignore[call-arg]  # the rest is in the environment
    assert read.group_consumer_session_timeout_ms == 3_000
    assert read.group_consumer_heartbeat_interval_ms == 300


def test_the_defaults_are_kafka_s() -> None:
    read = settings()
    assert read.group_consumer_session_timeout_ms == 45_000
    assert read.group_consumer_heartbeat_interval_ms == 5_000
    assert read.group_limits().offset_metadata_max_bytes == 4_096
    assert read.group_limits().inquiry.interval_ms == 10_000


def test_a_session_must_be_longer_than_the_heartbeat_interval() -> None:
    with pytest.raises(ValidationError, match="is 5000, not less than"):
        settings(group_consumer_session_timeout_ms=5_000)


def test_the_controller_must_be_named() -> None:
    with pytest.raises(ValidationError, match="controller must be set"):
        settings(controller="")


def test_limits_and_intervals_reach_the_machine() -> None:
    limits = settings(
        group_consumer_max_size=7, groups_max=8, group_offsets_max=9, group_producers_max=10
    ).group_limits()
    assert limits.group_size_max == 7
    assert limits.groups_max == 8
    assert limits.offsets_max == 9
    assert limits.producers_max == 10


def test_options_of_loops_come_from_the_settings() -> None:
    read = settings(
        transaction_inquiry_interval_ms=5,
        request_timeout_ms=6,
        superseded_inquiry_delay_ms=7,
        registration_interval_ms=8,
    )
    assert read.inquiry_options().interval_ms == 5
    assert read.inquiry_options().request_timeout_ms == 6
    assert read.inquiry_options().tick_ms == 7
    assert read.link_options().registration_interval_ms == 8
