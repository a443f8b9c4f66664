"""Which names a topic may have: Kafka's rule (``org.apache.kafka.common.internals.Topic``)."""

import re

from semel_common.errors import InvalidTopicError
from semel_common.wire.messages.request_bounds import TOPIC_NAME_LENGTH_MAX

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
_SHOWN_MAX = 60


def check_topic_name(name: str) -> None:
    """Raise InvalidTopicError if no topic may have this name."""
    if not name:
        raise InvalidTopicError("the name of a topic is empty")
    if name in {".", ".."}:
        raise InvalidTopicError(f"a topic cannot be named {name!r}")
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        raise InvalidTopicError(
            f"topic name {name[:_SHOWN_MAX] + '…'!r} has {len(name)} characters: "
            f"at most {TOPIC_NAME_LENGTH_MAX}"
        )
    if not _LEGAL.fullmatch(name):
        raise InvalidTopicError(
            f"topic name {name!r} has a character other than a-z, A-Z, 0-9, '.', '_' and '-'"
        )


def collision_key(name: str) -> str:
    """Return what two topics must not share: '.' and '_' are one in names of metrics."""
    return name.replace(".", "_")
