"""Whether the cluster answers, and has the topics that rows are to go to."""

from functools import cache

from aiosemel import Security
from aiosemel.errors import RequestTimedOutError
from pyspark_semel.connection import Connection, connect
from pyspark_semel.errors import UnknownTopicError, UnreachableError
from pyspark_semel.sink.options import SinkOptions


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


def check(options: SinkOptions) -> None:
    """Raise UnreachableError or UnknownTopicError before anything is written.

    Asks once in a process: a stream would ask for each micro-batch.
    """
    _check(options.bootstrap, options.api_timeout_ms, options.topic, options.security)


@cache
def _check(
    bootstrap: str, api_timeout_ms: int, topic: str | None, security: Security | None
) -> None:
    connection = connect(bootstrap, api_timeout_ms=api_timeout_ms, security=security)
    try:
        if topic is None:
            # Of no topics, the description needs no permission; that of the cluster does.
            connection.call(connection.client.admin().describe_topics(()))
        else:
            _partition_count(connection, topic)
    except RequestTimedOutError as error:
        raise UnreachableError(
            f"no cluster answers at {bootstrap} within {api_timeout_ms} ms ({error}): see whether"
            " bootstrap.servers is right, whether the services run, and whether this machine can"
            " reach them"
        ) from error


def _partition_count(connection: Connection, topic: str) -> int:
    """Ask for a topic, so that what is sent next goes to the one that has this name now."""
    described = connection.call(connection.client.admin().describe_topics([topic]))
    if topic not in described.topics:
        raise UnknownTopicError(
            f"there is no topic {topic!r} to write to: create it, or see whether its name is right"
        )
    return len(described.topics[topic].partitions)
