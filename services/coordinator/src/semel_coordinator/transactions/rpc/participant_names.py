"""Participants that a client names by topic: the controller says which topic ids they have.

The coordinator's own copy of the metadata would not do. A topic may have been deleted and created
again under its name; with the old id, a commit would leave out the partitions that the client has
written to, and their records would be aborted.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from semel.common.v1.participants_pb2 import TopicPartitions
from semel_common.errors import InvalidRequestError, TopicNotFoundError
from semel_common.wire.messages.request_bounds import NAMES_MAX
from semel_common.wire.status import from_value
from semel_coordinator.controller.rpc.current_topics import TopicsNow
from semel_runtime.server.calls import Call

Topics: TypeAlias = "RepeatedCompositeFieldContainer[TopicPartitions]"


def has_names(topics: Topics) -> bool:
    """Whether any topic is named, which asks the controller: a client with ids does not wait."""
    return any(topic.topic for topic in topics)


class TopicNames:
    """Gives topics of requests their ids."""

    def __init__(self, topics_now: TopicsNow) -> None:
        """Ask the controller."""
        self._topics_now = topics_now

    async def give_ids(
        self, lists: Iterable[Topics], call: Call, *, missing_ok: bool = False
    ) -> None:
        """Put the topic id beside each name.

        With ``missing_ok``, a topic that does not exist is taken out: nothing of it can be ended.
        Raises TopicNotFoundError without it, InvalidRequestError for the id of another topic, and
        RetriableError while the controller does not answer.
        """
        named = [topics for topics in lists if has_names(topics)]
        names = dict.fromkeys(topic.topic for topics in named for topic in topics if topic.topic)
        found = await self._ids_of(list(names), call, missing_ok=missing_ok)
        for topics in named:
            for index in reversed(range(len(topics))):
                if topics[index].topic and not _give_id(topics[index], found):
                    del topics[index]

    async def _ids_of(
        self, names: Sequence[str], call: Call, *, missing_ok: bool
    ) -> dict[str, str]:
        found: dict[str, str] = {}
        for piece in _pieces(names):
            for topic in await self._topics_now.find(piece, (), call):
                error = from_value(topic.error) if topic.HasField("error") else None
                if error is None:
                    found[topic.name] = topic.topic_id
                elif not (missing_ok and isinstance(error, TopicNotFoundError)):
                    raise error
        return found


def _pieces(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), NAMES_MAX):
        yield names[start : start + NAMES_MAX]


def _give_id(topic: TopicPartitions, found: dict[str, str]) -> bool:
    """Put the id of a topic in its place; False: there is no such topic."""
    topic_id = found.get(topic.topic)
    if topic_id is None:
        return False
    if topic.topic_id not in ("", topic_id):
        raise InvalidRequestError(
            f"topic id {topic.topic_id!r} is not that of {topic.topic!r}, which is {topic_id!r}:"
            " send the id alone, or the name alone",
            field="topic",
        )
    topic.topic_id = topic_id
    return True
