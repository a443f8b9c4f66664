"""Where a stream is: Kafka's JSON of offsets, and what proves whose offsets they are. No I/O.

Spark stores an offset of a source as the text of a JSON object, and compares texts: what is the
same must be written the same, so everything is sorted. The form is Kafka's, ``{"orders": {"0":
23}}``, and one key more that can be no name of a topic, ``@semel``: the cluster, and the ids of the
topics, for an offset means nothing in another log. See the decision "offsets name their logs".

The first offset of a query is where it begins, which Spark does not store. So the end of the first
micro-batch says it: a query that dies within that micro-batch, and is restarted, begins there
again, not where ``latest`` is by then.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from aiosemel import TopicPartition
from pyspark_semel.source import json_forms
from pyspark_semel.source.json_forms import OURS, FormError

LATEST = -1
EARLIEST = -2
"""Kafka's numbers for the ends of a log, where an offset is asked for."""

_OFFSET_MAX = (1 << 63) - 1
_CLUSTER = "cluster"
_TOPICS = "topics"
_BEGAN = "began"
_INITIAL = "initial"

Positions = Mapping[TopicPartition, int]
Json = dict[str, dict[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffsets:
    """The offsets of the next records to read, by partition, and whose they are."""

    cluster_id: str
    topic_ids: Mapping[str, str]
    """Of the topics, by name."""
    positions: Positions
    initial: bool = False
    """Whether the query begins here."""
    began: Positions | None = None
    """Where the query began; None but at the end of its first micro-batch."""

    def position(self, partition: TopicPartition, topic_id: str) -> int | None:
        """Return where to go on in a log; None if it is not known, or was another one."""
        if self.topic_ids.get(partition.topic) != topic_id:
            return None
        return self.positions.get(partition)

    def to_json(self) -> Json:
        """Return what Spark stores."""
        ours: dict[str, object] = {
            _CLUSTER: self.cluster_id,
            _TOPICS: dict(sorted(self.topic_ids.items())),
        }
        if self.initial:
            ours[_INITIAL] = True
        if self.began is not None:
            ours[_BEGAN] = _by_topic(self.began)
        return {OURS: dict(sorted(ours.items())), **_by_topic(self.positions)}

    @classmethod
    def from_json(cls, stored: object) -> "StreamOffsets":
        """Read what Spark has stored; raises FormError for anything that is not of here."""
        match stored:
            case {"@semel": {"cluster": str(cluster_id), "topics": dict(topic_ids)} as ours}:
                return cls(
                    cluster_id=cluster_id,
                    topic_ids=_ids(topic_ids),
                    positions=_positions(stored, topic_ids),
                    initial=ours.get(_INITIAL) is True,
                    began=_positions(ours[_BEGAN], topic_ids) if _BEGAN in ours else None,
                )
            case _:
                raise FormError("it does not name the cluster it is of")


def with_lag(reported: Json, behind: Mapping[str, Mapping[str, int]]) -> Json:
    """Return ends of logs as the progress of a query shows them; they are never stored."""
    return {**reported, OURS: {**reported[OURS], "behind": dict(sorted(behind.items()))}}


def _ids(topics: Mapping[str, object]) -> dict[str, str]:
    ids = {topic: topic_id for topic, topic_id in topics.items() if isinstance(topic_id, str)}
    if len(ids) != len(topics):
        raise FormError("the id of a topic is not a text")
    return ids


def _positions(stored: object, topic_ids: Mapping[str, object]) -> dict[TopicPartition, int]:
    positions = json_forms.numbers(stored)
    for each, offset in positions.items():
        if each.topic not in topic_ids:
            raise FormError(f"it has an offset of {each}, and no id of the topic")
        if not 0 <= offset <= _OFFSET_MAX:
            raise FormError(f"{offset} of {each} is not an offset")
    return positions


def _by_topic(positions: Positions) -> Json:
    topics: Json = {}
    for (topic, partition), offset in sorted(positions.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return topics
