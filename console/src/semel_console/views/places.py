"""The addresses of pages: every state of the console is one. No I/O."""

import re
from urllib.parse import urlencode

from aiosemel import TopicPartition


def address(path: str, **parameters: str | int | None) -> str:
    """Return the address of a page; a parameter that is None is left out."""
    given = {name.rstrip("_"): value for name, value in parameters.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def transaction(
    transactional_id: str, epoch: int | None = None, producer_id: int | None = None
) -> str:
    """Return where a transactional id, or one of its transactions, is described.

    Writers of joint transactions share id and epoch: only the producer id tells them apart.
    """
    return address(
        "/transaction", transactional_id=transactional_id, epoch=epoch, producer_id=producer_id
    )


def topic(name: str) -> str:
    """Return where a topic is described."""
    return address("/topic", name=name)


def partition(at: TopicPartition) -> str:
    """Return where a partition is described."""
    return address("/partition", topic=at.topic, partition=at.partition)


def messages(at: TopicPartition, *, start: int | None = None, isolation: str | None = None) -> str:
    """Return where the records of a partition are shown."""
    return address(
        "/messages", topic=at.topic, partition=at.partition, start=start, isolation=isolation
    )


def tail(topic_name: str, partition_number: int | None = None) -> str:
    """Return where the records of a topic are shown as they come."""
    return address("/tail", topic=topic_name, partition=partition_number)


def group(group_id: str) -> str:
    """Return where a group is described."""
    return address("/group", id=group_id)


def containing(text: str) -> str:
    """Return a pattern of RE2 that every id with this text matches; empty for no text."""
    return f"(?s).*{re.escape(text)}.*" if text else ""
