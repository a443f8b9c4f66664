"""Records and batches that are larger than a limit: what an error says of them, and when.

How large a payload becomes is known when it is encoded and compressed. So a record that may be too
large for its topic is encoded alone before it is refused.
"""

from aiosemel._cluster.metadata import TopicMetadata
from aiosemel._producer.batching.batch import Batch
from aiosemel.errors import MessageTooLargeError, SemelError
from semel_common.untrusted_text import natural_number

MAX_MESSAGE_BYTES = "max.message.bytes"
_LIMIT = "message_max_bytes"
"""The detail of a broker's error that says which limit the payload exceeds."""
_SIZE = "size_bytes"


def limit_of(topic: TopicMetadata) -> int | None:
    """Return the ``max.message.bytes`` of a topic; None if its brokers' setting holds."""
    return natural_number(topic.configs.get(MAX_MESSAGE_BYTES, ""))


def too_large(
    topic: str, record_count: int, size_bytes: int, limit_bytes: int
) -> MessageTooLargeError:
    """Return the error of what exceeds the limit of its topic."""
    return MessageTooLargeError(
        f"topic {topic!r}: {_what(record_count)} of {size_bytes:,} bytes exceeds"
        f" {MAX_MESSAGE_BYTES} ({limit_bytes:,}); raise the topic's limit or {_less(record_count)}",
        topic=topic,
        size_bytes=size_bytes,
        message_max_bytes=limit_bytes,
    )


def check_request_size(topic: str, record_count: int, size_bytes: int, size_max_bytes: int) -> None:
    """Raise MessageTooLargeError for a record, or an append, that fits into no request."""
    if size_bytes > size_max_bytes:
        raise MessageTooLargeError(
            f"topic {topic!r}: {_what(record_count)} of {size_bytes:,} bytes exceeds"
            f" max_request_size_bytes ({size_max_bytes:,}); raise this option of the producer or"
            f" {_less(record_count)}",
            topic=topic,
            size_bytes=size_bytes,
            max_request_size_bytes=size_max_bytes,
        )


def _what(record_count: int) -> str:
    return "a record" if record_count == 1 else f"an append of {record_count:,} records"


def _less(record_count: int) -> str:
    return "send smaller records" if record_count == 1 else "append fewer records at once"


def told_of(topic: str, batch: Batch, error: SemelError) -> SemelError:
    """Return the error of a batch that its broker finds too large, with the topic and the limit."""
    limit_bytes = natural_number(error.details.get(_LIMIT, ""))
    if not isinstance(error, MessageTooLargeError) or limit_bytes is None:
        return error
    size_bytes = natural_number(error.details.get(_SIZE, "")) or batch.size_bytes
    return too_large(topic, batch.record_count, size_bytes, limit_bytes)
