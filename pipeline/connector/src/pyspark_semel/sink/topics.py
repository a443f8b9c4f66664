"""Whether the cluster answers, and has the topics that rows are to go to."""

import time
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from pyspark_semel.connection import Connection
from pyspark_semel.errors import UnknownTopicError, UnreachableError
from pyspark_semel.preflight import (
    cluster_id_of,
    connect_to,
    through_first_outage,
    unreachable_named,
)
from pyspark_semel.sink.options import SinkOptions

_CHECK_AGE_MAX_S = 10.0
"""How long a stream relies on its last lookup."""


class Topics:
    """The topics that one task has met."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._partition_counts: dict[str, int] = {}

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has; raises UnknownTopicError."""
        count = self._partition_counts.get(topic)
        if count is None:
            count = self._partition_counts[topic] = _partition_count(self._connection, topic)
        return count


def checked(options: SinkOptions) -> SinkOptions:
    """Return the options with the cluster that answers, which has the topic of all rows.

    Raises UnreachableError, UnknownTopicError. A query that waits through outages plans again and
    again: it asks no more often than needed, and goes on with the cluster that it knows while that
    one is away.
    """
    now, waits = time.monotonic(), options.max_outage_ms is not None
    known = _found.get(options)
    if known is None or not waits or now - known.at > _CHECK_AGE_MAX_S:
        try:
            cluster_id = through_first_outage(options, partial(_ask, options))
            known = _found[options] = _Found(cluster_id, now)
        except UnreachableError:
            if known is None or not waits:
                raise
    return replace(options, cluster_id=known.cluster_id)


class _Found(NamedTuple):
    cluster_id: str
    at: float
    """Of the monotonic clock, in seconds."""


_found: dict[SinkOptions, _Found] = {}
"""By options without a cluster."""


def _ask(options: SinkOptions) -> str:
    cluster_id = cluster_id_of(options)
    if options.topic is not None:
        with unreachable_named(options, waits=False):
            _partition_count(connect_to(options, cluster_id), options.topic)
    return cluster_id


def _partition_count(connection: Connection, topic: str) -> int:
    """Look a topic up, so that later records go to the topic that has this name now."""
    described = connection.call(connection.client.admin().describe_topics([topic]))
    if topic not in described.topics:
        raise UnknownTopicError(
            f"there is no topic {topic!r} to write to: create it, or see whether its name is right"
        )
    return len(described.topics[topic].partitions)
