"""Reading options: what is misspelt, without meaning or missing is refused, and named.

Spark gives options with names in lower case and values as text; users write them as the
documentation does, in camel case, and errors say them so.
"""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path

from aiosemel import Security
from aiosemel.errors import InvalidConfigError
from pyspark_semel.errors import OptionError

BOOTSTRAP = "bootstrap.servers"
_KAFKA = "kafka."
PROTOCOL = "security.protocol"
CA = "ssl.ca.location"
CERTIFICATE = "ssl.certificate.location"
KEY = "ssl.key.location"
SERVER_NAME = "ssl.server.name"
TOKEN = "sasl.oauthbearer.token.location"  # noqa: S105 - the name of an option
_TLS = (CA, CERTIFICATE, KEY, SERVER_NAME)
_SHARED = (BOOTSTRAP, PROTOCOL, *_TLS, TOKEN)
"""Where the cluster is, and how to connect: of sources and sinks. Files are on every machine."""
_PROTOCOLS = {"PLAINTEXT": False, "SASL_PLAINTEXT": False, "SSL": True, "SASL_SSL": True}
"""Whether there is TLS."""
INT32_MAX = (1 << 31) - 1
"""The largest size, or time in milliseconds, that a request can name; Kafka's too."""
INT64_MAX = (1 << 63) - 1
"""The largest of all other numbers."""
_BOOLEANS = {"true": True, "false": False}


def refuse(given: Mapping[str, str], reasons: Mapping[str, str]) -> None:
    """Raise OptionError for an option that has a reason against it."""
    names = {name.lower(): name for name in reasons}
    for each in given:
        name = names.get(each.lower())
        if name is not None:
            raise OptionError(f"option {name} is given: {reasons[name]}")


class Options:
    """The options of one source or sink, of those that it knows."""

    def __init__(
        self, given: Mapping[str, str], known: Collection[str], dotted: Collection[str] = ()
    ) -> None:
        """Raise OptionError for a name that is not known, and for one that says two things.

        ``dotted`` are names of Kafka's clients: they may have ``kafka.`` before them, as Kafka's
        connector wants it.
        """
        of_clients = (*_SHARED, *dotted)
        all_names = (*known, *of_clients, *(f"{_KAFKA}{name}" for name in of_clients))
        names = {name.lower(): name for name in all_names}
        self._values: dict[str, str] = {}
        for name, value in given.items():
            lower = name.lower()
            if lower not in names:
                near = get_close_matches(lower, names, n=1)
                hint = f": did you mean {names[near[0]]}?" if near else ""
                raise OptionError(f"unknown option {lower!r}{hint}")
            plain = lower.removeprefix(_KAFKA)
            if self._values.setdefault(plain, value) != value:
                raise OptionError(f"{plain} and {_KAFKA}{plain} differ: give one of them")

    @property
    def bootstrap(self) -> str:
        """The addresses of the cluster."""
        addresses = self.filled(BOOTSTRAP)
        if addresses is None:
            raise OptionError(f"the option {BOOTSTRAP} is missing: the address host:port")
        return addresses

    @property
    def security(self) -> Security | None:
        """How to connect; None: without TLS and without proof of who this is."""
        protocol = (self.filled(PROTOCOL) or "PLAINTEXT").upper()
        if protocol not in _PROTOCOLS:
            raise OptionError(f"{PROTOCOL} is {protocol!r}: none of {', '.join(_PROTOCOLS)}")
        tls, has_token = _PROTOCOLS[protocol], protocol.startswith("SASL_")
        given = {name: value for name in (*_TLS, TOKEN) if (value := self.filled(name))}
        for name in given:
            if not (has_token if name == TOKEN else tls):
                raise OptionError(f"{name} is of no use: {PROTOCOL} is {protocol}")
        if has_token and TOKEN not in given:
            raise OptionError(f"{TOKEN} is missing: {PROTOCOL} is {protocol}")
        if not (tls or has_token):
            return None
        files = {name: Path(value) for name, value in given.items()}
        try:
            return Security(
                tls=tls,
                ssl_ca_location=files.get(CA),
                ssl_certificate_location=files.get(CERTIFICATE),
                ssl_key_location=files.get(KEY),
                ssl_server_name=given.get(SERVER_NAME),
                token=files.get(TOKEN),
            )
        except InvalidConfigError as error:
            raise OptionError(str(error)) from error

    def text(self, name: str) -> str | None:
        """Return the value of an option; None where it was not given."""
        return self._values.get(name.lower())

    def filled(self, name: str) -> str | None:
        """Return the value of an option that has to say something; None where it was not given."""
        value = self.text(name)
        if value is not None and not value.strip():
            raise OptionError(f"{name} is empty")
        return value

    def boolean(self, name: str, *, default: bool) -> bool:
        """Return an option that is ``true`` or ``false``."""
        value = self.text(name)
        if value is None:
            return default
        if value.strip().lower() not in _BOOLEANS:
            raise OptionError(f"{name} is {value!r}: neither true nor false")
        return _BOOLEANS[value.strip().lower()]

    def integer(self, name: str, *, minimum: int, maximum: int = INT64_MAX) -> int | None:
        """Return an option that is a whole number; None where it was not given."""
        value = self.text(name)
        if value is None:
            return None
        try:
            number = int(value)
        except ValueError:
            raise OptionError(f"{name} is {value!r}, not a whole number") from None
        if number < minimum:
            raise OptionError(f"{name} is {number}, less than {minimum}")
        if number > maximum:
            raise OptionError(f"{name} is {number}, more than {maximum}")
        return number
