"""The names that users give, addresses and topics: checked before any request is sent."""

import re
from collections.abc import Collection

from aiosemel.errors import InvalidConfigError, InvalidTopicError
from semel_common.addresses import split_address

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_SHOWN_MAX = 60


def parse_bootstrap(bootstrap: str) -> tuple[str, ...]:
    """Return the addresses of ``host:port[,host:port…]``; raises InvalidConfigError, TypeError."""
    check_str("bootstrap", bootstrap)
    addresses = tuple(part.strip() for part in bootstrap.split(",") if part.strip())
    for address in addresses:
        try:
            split_address(address)
        except ValueError as error:
            raise InvalidConfigError(f"bootstrap address {error}") from None
    if not addresses:
        raise InvalidConfigError("bootstrap has no address")
    return addresses


def check_topic_names(names: Collection[str]) -> None:
    """Raise InvalidTopicError unless these are names of topics, one at least."""
    if isinstance(names, str):
        raise InvalidTopicError(f"topics is {shown(names)}, not a collection of names")
    if not names:
        raise InvalidTopicError("topics is empty: call unsubscribe to read no topic")
    for name in names:
        check_topic_name(name)


def check_topic_name(name: object) -> None:
    """Raise InvalidTopicError for what can be no name of a topic: no need to ask for it."""
    name = check_str("topic", name)
    if _TOPIC_NAME.fullmatch(name) is None:
        raise InvalidTopicError(
            f"topic name {shown(name)} is not 1 to 249 characters of a-z, A-Z, 0-9, '.', '_' and"
            " '-'"
        )


def shown(given: object) -> str:
    """Return a value as errors quote it: its start, if it is long."""
    try:
        text = repr(given)
    except ValueError:  # a number of more digits than Python writes
        return f"a value of type {type(given).__name__}"
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def check_str(what: str, given: object) -> str:
    """Return what a caller gives; raises TypeError unless it is a str."""
    if not isinstance(given, str):
        raise TypeError(f"{what} must be str, not {type(given).__name__}")
    return given
