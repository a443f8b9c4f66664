"""A console that strangers could reach does not start."""

from pathlib import Path

import pytest

from aiosemel.errors import InvalidConfigError
from semel_console.options import ConsoleOptions, Listen

CERTIFICATE, KEY = Path("cert.pem"), Path("key.pem")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_programs_of_this_machine_reach_a_console_without_sign_in(host: str) -> None:
    assert not ConsoleOptions(bootstrap="h:1", listen=Listen(host=host)).has_tls


@pytest.mark.parametrize("host", ["192.0.2.1", "::", "10.1.2.3", "console.example.com"])
def test_other_machines_reach_only_a_console_with_tls_and_sign_in(host: str) -> None:
    listen = Listen(host=host)
    with pytest.raises(InvalidConfigError, match=r"--listen-cert.*--sign-in"):
        ConsoleOptions(bootstrap="h:1", listen=listen)
    with pytest.raises(InvalidConfigError, match="TLS"):
        ConsoleOptions(bootstrap="h:1", listen=listen, asks_for_tokens=True)
    with pytest.raises(InvalidConfigError, match="--sign-in"):
        ConsoleOptions(bootstrap="h:1", listen=listen, certificate=CERTIFICATE, key=KEY)
    assert ConsoleOptions(
        bootstrap="h:1", listen=listen, asks_for_tokens=True, certificate=CERTIFICATE, key=KEY
    ).has_tls


def test_a_certificate_needs_its_key() -> None:
    with pytest.raises(InvalidConfigError, match="belong together"):
        ConsoleOptions(bootstrap="h:1", certificate=CERTIFICATE)


@pytest.mark.parametrize("text", ["", "9080", "host:", ":9080", "host:x", "host:65536", "host:²"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfigError, match="host:port"):
        Listen.parse(text)


def test_an_address_of_ipv6_has_brackets() -> None:
    assert Listen.parse("[::1]:9080") == Listen(host="::1", port=9080)


@pytest.mark.parametrize(
    "url", ["127.0.0.1:16686", "jaeger", "ftp://jaeger", "http://", "http://j:x", "http://j/?a=b"]
)
def test_an_address_of_jaeger_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidConfigError, match="--jaeger is"):
        ConsoleOptions(bootstrap="h:1", jaeger=url)


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:16686", "https://traces.example/jaeger/"])
def test_jaeger_may_be_anywhere_or_nowhere(url: str) -> None:
    assert ConsoleOptions(bootstrap="h:1", jaeger=url).jaeger == url
