"""The two forms of JSON that options of the source have, and a checkpoint has. No I/O.

``{"orders": {"0": 23}}`` gives a number to each partition, ``{"orders": [0, 1]}`` names partitions.
Any other text or value is refused with FormError, which says where the form ends.
"""

import json
from collections.abc import Iterable

from aiosemel import TopicPartition

OURS = "@semel"
"""The key that is no topic: the source writes the cluster and the ids of the topics under it."""
_PARTITION_MAX = (1 << 31) - 1
_SHOWN_MAX = 60


class FormError(ValueError):
    """A text or a value does not have the form that it must have."""


def parse(text: str) -> object:
    """Return the value of a JSON text; raises FormError for anything that is not JSON."""
    try:
        value: object = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except FormError:
        raise
    except (ValueError, RecursionError) as error:
        raise FormError(f"it is not JSON: {error}") from error
    return value


def numbers(topics: object) -> dict[TopicPartition, int]:
    """Read ``{"orders": {"0": 23}}``."""
    found: dict[TopicPartition, int] = {}
    for topic, partitions in _topics(topics).items():
        if not isinstance(partitions, dict):
            raise FormError(f"{_shown(partitions)} of topic {_shown(topic)} is not an object")
        for partition, number in partitions.items():
            each = TopicPartition(topic, _partition(partition, topic))
            if each in found:
                raise FormError(
                    f"partition {each.partition} of topic {_shown(topic)} is there twice"
                )
            if type(number) is not int:
                raise FormError(
                    f"{_shown(number)} of {_shortened(str(each))} is not a whole number"
                )
            found[each] = number
    return found


def partitions(topics: object) -> frozenset[TopicPartition]:
    """Read ``{"orders": [0, 1]}``; at least one partition must be named."""
    found: list[TopicPartition] = []
    for topic, named in _topics(topics).items():
        if not isinstance(named, list):
            raise FormError(f"{_shown(named)} of topic {_shown(topic)} is not a list of partitions")
        for number in named:
            if type(number) is not int or not 0 <= number <= _PARTITION_MAX:
                raise FormError(f"{_shown(number)} of topic {_shown(topic)} is not a partition")
            found.append(TopicPartition(topic, number))
    if not found:
        raise FormError("it names no partition")
    return frozenset(found)


def _topics(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise FormError(f"{_shown(value)} is not an object of topics")
    return {topic: of_topic for topic, of_topic in value.items() if topic != OURS}


def _partition(text: str, topic: str) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(_PARTITION_MAX))
    if not is_number or int(text) > _PARTITION_MAX:
        raise FormError(f"{_shown(text)} of topic {_shown(topic)} is not a partition")
    return int(text)


def _object(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Refuse a key that is there twice: Python's reader keeps the last one, and says nothing."""
    made: dict[str, object] = {}
    for key, value in pairs:
        if key in made:
            raise FormError(f"the key {_shown(key)} is there twice")
        made[key] = value
    return made


def _constant(name: str) -> object:
    raise FormError(f"{name} is not JSON")


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or a number of too many digits
        return f"a value of type {type(value).__name__}"
    return _shortened(text)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
