"""Why the cluster refuses rows of a task, in the names that users of Spark know.

A transaction that fails keeps its reason as its cause.
"""

from aiosemel.errors import (
    MessageTooLargeError,
    SemelError,
    TopicNotFoundError,
    UnknownTopicIdError,
)
from pyspark_semel.errors import RecordError, SemelSparkError, UnknownTopicError
from pyspark_semel.sink.options import MAX_REQUEST_SIZE


def spark_error(error: SemelError) -> SemelSparkError | None:
    """Return what to raise for rows that are refused; None: no other error says more."""
    reason: BaseException | None = error
    while reason is not None:
        if isinstance(reason, MessageTooLargeError):
            return _too_large(reason)
        if isinstance(reason, (TopicNotFoundError, UnknownTopicIdError)):
            return _deleted(reason)
        reason = reason.__cause__
    return None


def _too_large(reason: MessageTooLargeError) -> RecordError:
    """Return the error of a row, of which the reason names topic, size and limit."""
    if "message_max_bytes" in reason.details:
        topic = reason.details.get("topic", "TOPIC")
        way = f"semel topics alter {topic} --config max.message.bytes=… raises it"
    else:
        way = f"the option is {MAX_REQUEST_SIZE} here; max.message.bytes of the topic may be less"
    return RecordError(f"a row is too large: {reason.message}; {way}")


def _deleted(reason: SemelError) -> UnknownTopicError:
    topic = reason.details.get("topic", "TOPIC")
    return UnknownTopicError(
        f"topic {topic!r} was deleted while this task wrote to it ({reason.message}): create it"
        " again, and restart the query"
    )
