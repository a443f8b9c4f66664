"""Settings of security: what is refused at the start, and what services call others with."""

from pathlib import Path

import pytest
from pydantic import ValidationError
from security_harness import Authority, Issuer

from semel_common.errors import InvalidConfigError
from semel_runtime.authentication.service_security import ServiceSecurity, own_security
from semel_runtime.config import ServiceSettings

FILES = {"ssl_certificate_location": Path("c"), "ssl_key_location": Path("k")}
TOKENS = {
    "sasl_oauthbearer_jwks_endpoint_url": "https://issuer.example/keys",
    "sasl_oauthbearer_expected_issuer": "i",
    "sasl_oauthbearer_expected_audience": "a",
}
OTHERS = "client://10.0.0.1:9092,default://127.0.0.1:0"


def settings(**options: object) -> ServiceSettings:
    return ServiceSettings.model_validate({"data_dir": "x", "listeners": OTHERS, **options})


@pytest.mark.parametrize(
    ("options", "lacks"),
    [
        ({}, "without TLS"),
        ({"listener_security_protocol_map": "client:SASL_PLAINTEXT", **TOKENS}, "without TLS"),
        (
            {"listener_security_protocol_map": "client:SSL", **FILES},
            "without authentication",
        ),
        (
            {
                "listener_security_protocol_map": "client:SSL",
                **FILES,
                "ssl_ca_location": Path("ca"),
                "ssl_client_auth": "required",
                "listener_name": {"client": {"ssl_client_auth": "none"}},
            },
            "without authentication",
        ),
        ({"insecure_listeners": "default"}, "without TLS"),
        (
            {"listeners": "default://127.0.0.1:0", "frame_listeners": "default://0.0.0.0:1"},
            "without TLS",
        ),
        ({"listeners": "default://[::]:1"}, "without TLS"),
        ({"listeners": "default://broker.example:1"}, "without TLS"),
    ],
)
def test_a_listener_that_others_can_reach_is_refused_unless_it_is_secure(
    options: dict[str, object], lacks: str
) -> None:
    with pytest.raises(ValidationError, match=lacks) as refused:
        settings(**options)
    name = "client" if "listeners" not in options else "default"
    assert f"listener '{name}' at" in str(refused.value)
    assert "insecure_listeners" in str(refused.value)


@pytest.mark.parametrize(
    "options",
    [
        {"insecure_listeners": "client"},
        {"listener_security_protocol_map": "client:SASL_SSL", **FILES, **TOKENS},
        {
            "listener_security_protocol_map": "client:ssl",
            **FILES,
            "listener_name": {"client": {"ssl_client_auth": "required", "ssl_ca_location": "ca"}},
        },
        {"listeners": "default://127.0.0.1:0"},
        {"listeners": "default://127.8.9.1:0"},
        {"listeners": "default://localhost:0"},
        {"listeners": "default://[::1]:0"},
    ],
)
def test_a_listener_starts_if_it_is_secure_or_for_this_machine_or_said_to_be_insecure(
    options: dict[str, object],
) -> None:
    settings(**options)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"listener_security_protocol_map": "other:SSL"}, "map names 'other'"),
        ({"listener_security_protocol_map": "default:TLS"}, "'default:TLS' is not of the form"),
        ({"insecure_listeners": "other"}, "insecure_listeners names 'other'"),
        ({"listener_name": {"other": {}}}, "listener_name names 'other'"),
        ({"listener_name": {"default": {"port": 1}}}, "listener_name.default.port"),
        ({"listener_security_protocol_map": "default:SSL"}, "ssl_certificate_location must be set"),
        (
            {
                "listener_security_protocol_map": "default:SSL",
                "ssl_client_auth": "required",
                **FILES,
            },
            "ssl_ca_location must be set",
        ),
        (
            {"listener_security_protocol_map": "default:SASL_PLAINTEXT"},
            "jwks_endpoint_url must be set",
        ),
        (
            {
                "listener_security_protocol_map": "default:SASL_PLAINTEXT",
                **TOKENS,
                "sasl_oauthbearer_expected_audience": "",
            },
            "expected_audience must be set",
        ),
        (
            {
                "listener_security_protocol_map": "default:SASL_PLAINTEXT",
                **TOKENS,
                "sasl_oauthbearer_jwks_endpoint_url": "http://issuer.example/keys",
            },
            "must begin with https",
        ),
        ({"sasl_oauthbearer_algorithms": "RS256,HS256"}, "names 'HS256'"),
        ({"sasl_oauthbearer_algorithms": "none"}, "names 'none'"),
        ({"sasl_oauthbearer_algorithms": " "}, "is empty"),
    ],
)
def test_security_that_cannot_work_is_refused(options: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        settings(**{"listeners": "default://127.0.0.1:0", **options})


def test_a_listener_may_have_what_the_others_have_not() -> None:
    found = settings(
        listener_security_protocol_map="client:SSL,default:PLAINTEXT",
        ssl_ca_location=Path("ca"),
        **FILES,
        listener_name={"client": {"ssl_client_auth": "required", "ssl_key_location": "own"}},
    ).security_of("client")
    assert found.ssl_client_auth == "required"
    assert found.ssl_key_location == Path("own")
    assert found.ssl_certificate_location == Path("c")


@pytest.mark.parametrize(
    ("protocol", "client_auth", "authenticates"),
    [
        ("PLAINTEXT", "required", False),
        ("SSL", "none", False),
        ("SSL", "required", True),
        ("SASL_SSL", "none", True),
        ("SASL_PLAINTEXT", "none", True),
    ],
)
def test_settings_know_whether_a_listener_names_its_callers(
    protocol: str, client_auth: str, authenticates: bool
) -> None:
    found = settings(
        listeners="default://127.0.0.1:0",
        listener_security_protocol_map=f"default:{protocol}",
        ssl_client_auth=client_auth,
        ssl_ca_location=Path("ca"),
        **FILES,
        **TOKENS,
    )
    assert found.authenticates is authenticates


def test_a_service_calls_others_as_their_listener_for_services_asks(tmp_path: Path) -> None:
    token = tmp_path / "token"
    options = {
        "listener_security_protocol_map": "client:SASL_SSL,default:SSL",
        "ssl_client_auth": "required",
        "ssl_ca_location": Path("ca"),
        "sasl_oauthbearer_token_location": token,
        **FILES,
        **TOKENS,
    }
    by_certificate = own_security(settings(**options))
    assert by_certificate.token is None
    assert by_certificate.ssl_certificate_location == Path("c")
    by_token = own_security(settings(**options, inter_broker_listener_name="client"))
    assert by_token.tls
    assert by_token.token == token
    assert not own_security(settings(insecure_listeners="client")).tls


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    options = {"listeners": "default://127.0.0.1:0", **FILES}
    with pytest.raises(InvalidConfigError, match="the certificates c, k cannot be used"):
        ServiceSecurity(settings(**options, listener_security_protocol_map="default:SSL"))
    tokens = {**TOKENS, "sasl_oauthbearer_jwks_endpoint_url": f"file://{tmp_path}/keys.json"}
    protocol = {"listener_security_protocol_map": "default:SASL_PLAINTEXT"}
    with pytest.raises(InvalidConfigError, match="is no key set"):
        ServiceSecurity(settings(listeners="default://127.0.0.1:0", **protocol, **tokens))


def test_what_settings_name_is_what_listeners_serve_with(tmp_path: Path) -> None:
    authority, issuer = Authority(tmp_path / "ca"), Issuer(tmp_path / "keys.json")
    files = authority.server()
    security = ServiceSecurity(
        settings(
            listener_security_protocol_map="client:SASL_SSL,default:SSL",
            ssl_certificate_location=files.certificate,
            ssl_key_location=files.key,
            ssl_ca_location=files.client_ca,
            listener_name={"default": {"ssl_client_auth": "required"}},
            **{**TOKENS, "sasl_oauthbearer_jwks_endpoint_url": f"file://{issuer.path}"},
            cluster_principals="User:semel; User:other",
        )
    )
    client, default = security.of("client"), security.of("default")
    assert client.tokens is not None
    assert client.tls is not None
    assert not client.tls.asks_clients
    assert default.tokens is None
    assert default.tls is not None
    assert default.tls.asks_clients
    assert default.cluster_principals == {"User:semel", "User:other"}


KNOWN = {"listener_security_protocol_map": "client:SSL,default:SSL", **FILES}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"insecure_listeners": "client"}, "does not authenticate its callers"),
        (
            {**KNOWN, "ssl_ca_location": Path("ca"), "ssl_client_auth": "required"},
            "cluster_principals does not say",
        ),
    ],
)
def test_access_rules_that_would_shut_services_out_are_refused(
    options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InvalidConfigError, match=sentence):
        ServiceSecurity(settings(authorizer="acls", **options))


def test_secrets_that_others_may_read_are_refused_with_the_command_that_closes_them(
    tmp_path: Path,
) -> None:
    files = Authority(tmp_path / "ca").server()
    token = tmp_path / "token"
    token.write_text("token")
    options = {
        "listeners": "default://127.0.0.1:0",
        "ssl_certificate_location": files.certificate,
        "ssl_key_location": files.key,
        "sasl_oauthbearer_token_location": token,
        **TOKENS,
    }
    by_certificate = settings(**options, listener_security_protocol_map="default:SSL")
    by_token = settings(**options, listener_security_protocol_map="default:SASL_PLAINTEXT")
    for each in (files.key, token):
        each.chmod(0o640)  # As Kubernetes mounts a secret for the group of a pod.
    ServiceSecurity(by_certificate)
    own_security(by_certificate)
    own_security(by_token)
    for each in (files.key, token):
        each.chmod(0o644)
    for refused, file in (
        (ServiceSecurity, files.key),
        (own_security, files.key),
    ):
        with pytest.raises(InvalidConfigError, match=rf"mode 0644.*chmod o-rwx {file}"):
            refused(by_certificate)
    with pytest.raises(InvalidConfigError, match=rf"mode 0644.*chmod o-rwx {token}"):
        own_security(by_token)
