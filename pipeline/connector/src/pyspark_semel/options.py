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
_BOOTSTRAP_OF_KAFKA = f"{_KAFKA}{BOOTSTRAP}"
PROTOCOL = "security.protocol"
CA = "ssl.ca.location"
CERTIFICATE = "ssl.certificate.location"
KEY = "ssl.key.location"
SERVER_NAME = "ssl.server.name"
TOKEN = "sasl.oauthbearer.token.location"  # noqa: S105 - the name of an option
_SECURITY = (PROTOCOL, CA, CERTIFICATE, KEY, SERVER_NAME, TOKEN)
"""How to connect; each may be written with ``kafka.`` before it. Files are on every machine."""
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

    def __init__(self, given: Mapping[str, str], known: Collection[str]) -> None:
        """Raise OptionError for the first name that is not known."""
        shared = (BOOTSTRAP, *_SECURITY)
        all_names = (*known, *shared, *(f"{_KAFKA}{name}" for name in shared))
        names = {name.lower(): name for name in all_names}
        self._values = {name.lower(): value for name, value in given.items()}
        for name in self._values:
            if name not in names:
                near = get_close_matches(name, names, n=1)
                hint = f": did you mean {names[near[0]]}?" if near else ""
                raise OptionError(f"unknown option {name!r}{hint}")

    @property
    def bootstrap(self) -> str:
        """The addresses of the cluster, under Semel's name or Kafka's."""
        ours, kafkas = self.text(BOOTSTRAP), self.text(_BOOTSTRAP_OF_KAFKA)
        if ours and kafkas and ours != kafkas:
            raise OptionError(f"{BOOTSTRAP} and {_BOOTSTRAP_OF_KAFKA} differ: give one of them")
        if not (ours or kafkas):
            raise OptionError(f"the option {BOOTSTRAP} is missing: the address host:port")
        return ours or kafkas or ""

    @property
    def security(self) -> Security | None:
        """How to connect; None: without TLS and without proof of who this is."""
        protocol = (self._either(PROTOCOL) or "PLAINTEXT").upper()
        if protocol not in _PROTOCOLS:
            raise OptionError(f"{PROTOCOL} is {protocol!r}: none of {', '.join(_PROTOCOLS)}")
        given = {name: Path(value) for name in _SECURITY[1:] if (value := self._either(name))}
        if protocol == "PLAINTEXT":
            if given:
                raise OptionError(f"{next(iter(given))} is of no use: {PROTOCOL} is PLAINTEXT")
            return None
        has_tokens = protocol.startswith("SASL_")
        if has_tokens != (TOKEN in given):
            lacks = "is missing" if has_tokens else "is of no use"
            raise OptionError(f"{TOKEN} {lacks}: {PROTOCOL} is {protocol}")
        try:
            return Security(
                tls=_PROTOCOLS[protocol],
                ssl_ca_location=given.get(CA),
                ssl_certificate_location=given.get(CERTIFICATE),
                ssl_key_location=given.get(KEY),
                ssl_server_name=self._either(SERVER_NAME),
                token=given.get(TOKEN),
            )
        except InvalidConfigError as error:
            raise OptionError(str(error)) from error

    def _either(self, name: str) -> str | None:
        """Return an option under Semel's name, or Kafka's."""
        return self.text(name) or self.text(f"{_KAFKA}{name}")

    def text(self, name: str) -> str | None:
        """Return the value of an option; None where it was not given."""
        return self._values.get(name.lower())

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
