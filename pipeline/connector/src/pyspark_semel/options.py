"""Reading options: what is misspelt, without meaning or missing is refused, and named.

Spark gives options with names in lower case and values as text; users write them as the
documentation does, in camel case, and errors say them so.
"""

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path

from aiosemel import Security
from aiosemel.errors import InvalidConfigError
from pyspark_semel.errors import OptionError

BOOTSTRAP = "bootstrap.servers"
_KAFKA = "kafka."
IGNORE_KAFKA = "ignoreKafkaProperties"
"""Whether properties of Kafka's clients that have no meaning here are passed over."""
API_TIMEOUT = "default.api.timeout.ms"
API_TIMEOUT_MS = 60_000
"""How long a call to the cluster may take with all its attempts, unless an option says else."""
MAX_OUTAGE = "maxOutage"
MAX_OUTAGE_MS = 3_600_000
"""How long a stream waits for a cluster that is away, unless an option says else."""
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
_INTEGER = re.compile(r"\s*([+-]?[0-9]{1,1000})\s*")
"""What Java takes for a number, too; Python refuses to read much longer ones."""
_SHOWN_MAX = 200
_DURATION = re.compile(r"\s*([0-9]{1,12})\s*([a-z]*)\s*")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_BOOLEANS = {"true": True, "false": False}


def shown(value: str) -> str:
    """Return a value as errors say it: quoted, and no longer than a line or two."""
    return shortened(repr(value))


def shortened(text: str) -> str:
    """Return a text, or the start of a long one."""
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def refuse(given: Mapping[str, str], reasons: Mapping[str, str]) -> None:
    """Raise OptionError for an option that has a reason against it."""
    names = {name.lower(): name for name in reasons}
    for option in given:
        name = names.get(option.lower())
        if name is not None:
            raise OptionError(f"option {name} is given: {reasons[name]}")


def refuse_tables_and_paths(given: Mapping[str, str], *, instead: str) -> None:
    """Raise OptionError for what Spark makes options of: a table of its catalog, and paths.

    ``instead`` is the option that names a topic.
    """
    lower = {name.lower() for name in given}
    if "provider" in lower:
        raise OptionError(
            "CREATE TABLE … USING semel is not supported: Spark keeps no options of such a table."
            " To query a topic in SQL, use CREATE TEMPORARY VIEW … USING semel OPTIONS (…)"
        )
    for name in ("path", "paths", "location"):
        if name in lower:
            raise OptionError(
                f"a path is given (option {name!r}), and a topic has none: leave it out of load,"
                f" save or start, and name the topic with the option {instead}"
            )


class Options:
    """The options of one source or sink."""

    def __init__(
        self, given: Mapping[str, str], known: Collection[str], dotted: Collection[str] = ()
    ) -> None:
        """Raise OptionError for a name that is not known, and for one that says two things.

        ``dotted`` are names of Kafka's clients: they may have ``kafka.`` before them, as Kafka's
        connector wants it.
        """
        of_clients = (*_SHARED, *dotted)
        of_kafka = [f"{_KAFKA}{name}" for name in of_clients]
        names = {name.lower(): name for name in (*known, IGNORE_KAFKA, *of_clients, *of_kafka)}
        self._values: dict[str, str] = {}
        unknown = [name.lower() for name in given if name.lower() not in names]
        for name, value in given.items():
            if name.lower() in unknown:
                continue
            plain = name.lower().removeprefix(_KAFKA)
            if self._values.setdefault(plain, value) != value:
                raise OptionError(f"{plain} and {_KAFKA}{plain} differ: give one of them")
        ignored = self.boolean(IGNORE_KAFKA, default=False)
        for lower in unknown:
            if not lower.startswith(_KAFKA):
                raise OptionError(_unknown(lower, names))
            if not ignored:
                raise OptionError(_without_meaning(lower, sorted(of_kafka)))

    @property
    def bootstrap(self) -> str:
        """The addresses of the cluster."""
        addresses = self.filled(BOOTSTRAP)
        if addresses is None:
            raise OptionError(
                f"the option {BOOTSTRAP} is missing: the address host:port. (Of a table in its"
                " catalog, Spark passes no options on: such a table cannot be used)"
            )
        return addresses

    @property
    def security(self) -> Security | None:
        """How to connect; None: without TLS and without credentials."""
        protocol = (self.filled(PROTOCOL) or "PLAINTEXT").upper()
        if protocol not in _PROTOCOLS:
            raise OptionError(f"{PROTOCOL} is {shown(protocol)}: none of {', '.join(_PROTOCOLS)}")
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
            raise OptionError(f"{name} is {shown(value)}: neither true nor false")
        return _BOOLEANS[value.strip().lower()]

    def integer(self, name: str, *, minimum: int, maximum: int = INT64_MAX) -> int | None:
        """Return an option that is a whole number; None where it was not given."""
        value = self.text(name)
        if value is None:
            return None
        found = _INTEGER.fullmatch(value)
        if found is None:
            raise OptionError(f"{name} is {shown(value)}, not a whole number")
        number = int(found[1])
        if number < minimum:
            raise OptionError(f"{name} is {shortened(str(number))}, less than {minimum}")
        if number > maximum:
            raise OptionError(f"{name} is {shortened(str(number))}, more than {maximum}")
        return number

    def duration_ms(self, name: str, default_ms: int) -> int:
        """Return an option that is a time with its unit, as Spark writes one, in milliseconds."""
        text = self.text(name)
        if text is None:
            return default_ms
        found = _DURATION.fullmatch(text.lower())
        if found is None or (found[2] or "ms") not in _UNITS_MS:
            raise OptionError(f"{name} is {shown(text)}, no time such as 500ms, 30s, 15m or 2h")
        duration_ms = int(found[1]) * _UNITS_MS[found[2] or "ms"]
        if duration_ms > INT64_MAX:
            raise OptionError(f"{name} is {shown(text)}, more than {INT64_MAX} ms")
        return duration_ms


def _unknown(name: str, known: Mapping[str, str]) -> str:
    """Return what to say of a name in lower case; ``known`` are names by their lower case."""
    near = get_close_matches(name, known, n=1)
    hint = f": did you mean {known[near[0]]}?" if near else ""
    return f"unknown option {shown(name)}{hint}"


def _without_meaning(name: str, of_kafka: Collection[str]) -> str:
    return (
        f"option {shown(name)} is a property of Kafka's clients, without meaning here: leave it"
        f" out, or set {IGNORE_KAFKA} to true. Names with {_KAFKA!r} that have a meaning:"
        f" {', '.join(of_kafka)}"
    )
