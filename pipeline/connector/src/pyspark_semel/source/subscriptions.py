"""Which partitions a source reads: ``subscribe``, ``subscribePattern``, ``assign``. No I/O."""

import re
from dataclasses import dataclass
from typing import TypeAlias

from aiosemel import TopicPartition
from pyspark_semel.errors import OptionError
from pyspark_semel.options import Options, shortened, shown
from pyspark_semel.source import json_forms
from pyspark_semel.source.json_forms import FormError

SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True, slots=True)
class Topics:
    """All partitions of some topics."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """All partitions of the topics whose whole names match a regular expression."""

    pattern: "re.Pattern[str]"


@dataclass(frozen=True, slots=True)
class Partitions:
    """These partitions."""

    partitions: frozenset[TopicPartition]


Subscription: TypeAlias = Topics | Pattern | Partitions


def subscribes(subscription: Subscription, topic: str) -> bool:
    """Whether any partition of a topic is subscribed to."""
    match subscription:
        case Topics(names):
            return topic in names
        case Pattern(pattern):
            return pattern.fullmatch(topic) is not None
        case Partitions(partitions):
            return any(partition.topic == topic for partition in partitions)


def subscription(options: Options) -> Subscription:
    """Read the one option that must be given; raises OptionError."""
    given = [name for name in SUBSCRIPTIONS if options.text(name) is not None]
    if len(given) != 1:
        found = f"{' and '.join(given)} are" if given else "none is"
        raise OptionError(f"one of {', '.join(SUBSCRIPTIONS)} is needed, and {found} given")
    (name,) = given
    text = options.filled(name) or ""
    match name:
        case "subscribe":
            names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
            if not names:
                raise OptionError("subscribe names no topic: give names, with commas between")
            return Topics(names)
        case "subscribePattern":
            try:
                return Pattern(re.compile(text.strip()))
            except (re.error, OverflowError, RecursionError) as error:
                raise OptionError(
                    f"subscribePattern is {shown(text)}, no regular expression:"
                    f" {shortened(str(error))}"
                ) from error
        case _:
            return Partitions(_assigned(text))


def _assigned(text: str) -> frozenset[TopicPartition]:
    try:
        return json_forms.partitions(json_forms.parse(text))
    except FormError as error:
        raise OptionError(
            f'assign is {shown(text)}, not of the form {{"topic":[0,1],"other":[2]}}: {error}'
        ) from error
