"""Reading options: what is misspelt, without meaning or missing is refused, and named.

Spark gives options with names in lower case and values as text; users write them as the
documentation does, in camel case, and errors say them so.
"""

from collections.abc import Collection, Mapping
from difflib import get_close_matches

from pyspark_semel.errors import OptionError

BOOTSTRAP = "bootstrap.servers"
_BOOTSTRAP_OF_KAFKA = "kafka.bootstrap.servers"
_BOOLEANS = {"true": True, "false": False}


class Options:
    """The options of one source or sink, of those that it knows."""

    def __init__(self, given: Mapping[str, str], known: Collection[str]) -> None:
        """Raise OptionError for the first name that is not known."""
        names = {name.lower(): name for name in (*known, BOOTSTRAP, _BOOTSTRAP_OF_KAFKA)}
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

    def integer(self, name: str, *, minimum: int) -> int | None:
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
        return number
