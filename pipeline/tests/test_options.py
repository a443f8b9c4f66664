"""Options are read as the documentation says, and nothing misspelt passes."""

import pickle
from pathlib import Path

import pytest

from aiosemel import Security
from pyspark_semel.errors import OptionError
from pyspark_semel.options import Options


def test_names_are_the_same_in_any_case() -> None:
    options = Options({"failondataloss": "FALSE"}, ["failOnDataLoss"])
    assert options.boolean("failOnDataLoss", default=True) is False


def test_a_misspelt_option_is_named_with_the_nearest_known_one() -> None:
    with pytest.raises(OptionError, match="'subscibe': did you mean subscribe"):
        Options({"subscibe": "orders"}, ["subscribe"])


def test_the_address_may_have_the_name_that_it_has_for_kafka() -> None:
    assert Options({"kafka.bootstrap.servers": "a:1"}, []).bootstrap == "a:1"


@pytest.mark.parametrize("name", ["kafka.linger.ms", "kafka.ssl.truststore.location", "kafka.x"])
def test_a_property_of_kafkas_clients_is_said_to_have_no_meaning_here(name: str) -> None:
    said = f"'{name}' is a property of Kafka's clients, without meaning here"
    with pytest.raises(OptionError, match=said) as refused:
        Options({name: "5"}, ["linger"], ["max.request.size"])
    assert "did you mean" not in str(refused.value)
    assert "kafka.bootstrap.servers, kafka.max.request.size" in str(refused.value)


def test_properties_of_kafkas_clients_may_be_passed_over() -> None:
    given = {"kafka.linger.ms": "5", "kafka.bootstrap.servers": "a:1"}
    assert Options({**given, "ignorekafkaproperties": "true"}, []).bootstrap == "a:1"
    for more in ({"ignorekafkaproperties": "false"}, {}):
        with pytest.raises(OptionError, match=r"kafka\.linger\.ms"):
            Options({**given, **more}, [])
    with pytest.raises(OptionError, match="unknown option 'linger'"):
        Options({"linger": "5", "ignorekafkaproperties": "true"}, [])


@pytest.mark.parametrize(
    "name",
    ["bootstrap.servers", "security.protocol", "ssl.ca.location", "max.request.size"],
)
def test_a_name_and_its_kafka_name_must_say_the_same(name: str) -> None:
    same = Options({name: "a", f"kafka.{name}": "a"}, [], ["max.request.size"])
    assert same.text(name) == "a"
    with pytest.raises(OptionError, match=f"{name} and kafka.{name} differ"):
        Options({name: "a", f"kafka.{name}": "b"}, [], ["max.request.size"])


def test_a_missing_address_is_refused() -> None:
    with pytest.raises(OptionError, match=r"bootstrap\.servers is missing"):
        assert Options({}, []).bootstrap


@pytest.mark.parametrize("value", ["x", "1.5", "", "0"])
def test_a_number_is_whole_and_not_too_small(value: str) -> None:
    with pytest.raises(OptionError, match="minPartitions is"):
        Options({"minPartitions": value}, ["minPartitions"]).integer("minPartitions", minimum=1)


def test_a_boolean_is_true_or_false() -> None:
    with pytest.raises(OptionError, match="neither true nor false"):
        Options({"a": "yes"}, ["a"]).boolean("a", default=True)


def test_without_a_protocol_it_is_plain_text() -> None:
    assert Options({}, []).security is None


@pytest.mark.parametrize("prefix", ["", "kafka."])
def test_security_has_the_names_that_it_has_for_kafka(prefix: str) -> None:
    given = {
        f"{prefix}security.protocol": "sasl_ssl",
        f"{prefix}ssl.ca.location": "ca.pem",
        f"{prefix}ssl.certificate.location": "cert.pem",
        f"{prefix}ssl.key.location": "key.pem",
        f"{prefix}ssl.server.name": "semel.example",
        f"{prefix}sasl.oauthbearer.token.location": "token",
    }
    expected = Security(
        ssl_ca_location=Path("ca.pem"),
        ssl_certificate_location=Path("cert.pem"),
        ssl_key_location=Path("key.pem"),
        ssl_server_name="semel.example",
        token=Path("token"),
    )
    assert Options(given, []).security == expected
    assert pickle.loads(pickle.dumps(expected)) == expected, "Spark sends it to its tasks"  # noqa: S301 - our own


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"security.protocol": "tls"}, "none of PLAINTEXT"),
        ({"security.protocol": ""}, "security.protocol is empty"),
        ({"security.protocol": "SSL", "ssl.ca.location": " "}, "ssl.ca.location is empty"),
        ({"ssl.ca.location": "ca.pem"}, "ssl.ca.location is of no use"),
        ({"security.protocol": "SASL_SSL"}, "token.location is missing"),
        (
            {"security.protocol": "SSL", "sasl.oauthbearer.token.location": "t"},
            "token.location is of no use",
        ),
        ({"security.protocol": "SSL", "ssl.key.location": "k"}, "belong together"),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.oauthbearer.token.location": "t",
                "ssl.server.name": "n",
            },
            "ssl.server.name is of no use: security.protocol is SASL_PLAINTEXT",
        ),
    ],
)
def test_security_that_cannot_work_is_refused(given: dict[str, str], problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        assert Options(given, []).security
