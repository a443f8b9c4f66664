"""Settings that all services share."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from semel_runtime.cluster.metadata_image import Listener
from semel_runtime.config import ServiceSettings, parse_listeners


def test_listeners_are_read_with_names_hosts_and_ports() -> None:
    assert parse_listeners("client://0.0.0.0:9092, internal://[::1]:9093") == (
        Listener(name="client", host="0.0.0.0", port=9092),  # noqa: S104 - an address to parse
        Listener(name="internal", host="::1", port=9093),
    )


def test_an_ipv6_address_is_written_with_brackets() -> None:
    assert Listener(name="x", host="::1", port=9093).address == "[::1]:9093"
    assert Listener(name="x", host="localhost", port=9093).address == "localhost:9093"


@pytest.mark.parametrize(
    "text",
    ["", "localhost:9092", "a://localhost", "a://:1", "a://h:70000", "a://h:x", "a://h:1,a://h:2"],
)
def test_a_malformed_listener_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match=r"listener|form"):
        ServiceSettings(data_dir=Path(), listeners=text)


def test_a_journal_url_that_is_none_is_not_taken_for_a_folder() -> None:
    with pytest.raises(ValidationError, match="journal_url is no URL: write postgresql://"):
        ServiceSettings(data_dir=Path(), journal_url="db.example.com:5432/semel")


def test_an_advertised_listener_must_be_bound() -> None:
    with pytest.raises(ValidationError, match="advertised_listeners names 'other'"):
        ServiceSettings(data_dir=Path(), advertised_listeners="other://h:1")


def test_the_listener_for_health_is_a_host_and_a_port(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="not host:port"):
        ServiceSettings(data_dir=tmp_path, health_listener="9096")


def test_the_listener_between_services_must_be_bound() -> None:
    with pytest.raises(ValidationError, match="inter_broker_listener_name is 'internal'"):
        ServiceSettings(data_dir=Path(), inter_broker_listener_name="internal")


def test_a_listener_that_is_not_advertised_is_told_as_it_was_bound() -> None:
    settings = ServiceSettings(
        data_dir=Path(),
        listeners="default://127.0.0.1:0,client://127.0.0.1:0",
        advertised_listeners="client://example.org:443",
    )
    bound = tuple(
        Listener(name=name, host="127.0.0.1", port=port)
        for name, port in (("default", 5001), ("client", 5002))
    )
    assert settings.advertised(bound) == (
        bound[0],
        Listener(name="client", host="example.org", port=443),
    )


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMEL_DATA_DIR", "somewhere")
    monkeypatch.setenv("SEMEL_STREAMS_MAX", "12")
    settings = ServiceSettings()  # type: ignore[call-arg]  # read from the environment
    assert settings.data_dir == Path("somewhere")
    assert settings.server_limits().streams_max == 12
