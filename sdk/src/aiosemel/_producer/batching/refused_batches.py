"""The meaning of a refusal: whether a batch may be stored, and whether it needs another epoch."""

from aiosemel._cluster.last_error import with_last_error
from aiosemel._producer.batching.batch import Batch, PartitionBatches
from aiosemel.errors import (
    BaseOffsetMismatchError,
    FencedLeaderEpochError,
    InvalidProducerTokenError,
    InvalidRequestError,
    NotLeaderOrFollowerError,
    OutOfOrderSequenceNumberError,
    RequestTimedOutError,
    SemelError,
    ThrottlingQuotaExceededError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from aiosemel.types.offsets import TopicPartition
from semel_common.untrusted_text import natural_number

NOT_STORED = (
    BaseOffsetMismatchError,
    FencedLeaderEpochError,
    InvalidProducerTokenError,
    InvalidRequestError,
    NotLeaderOrFollowerError,
    OutOfOrderSequenceNumberError,
    ThrottlingQuotaExceededError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
"""Errors after which a broker has not stored a batch. After any other it may have."""


def needs_epoch(batch: Batch, error: OutOfOrderSequenceNumberError, *, age_ms: float) -> bool:
    """Whether a batch outside of transactions, and all behind it, need a new epoch.

    The batch ``was_first`` at its last attempt. A broker may refuse any other batch because it came
    before its predecessors: the same sequence is right later, and only under it is a repeat known.
    Not if the broker has stored another batch under its sequence: two producers have one id.
    ``age_ms`` is the age of the batch, so no attempt of it is older.
    """
    return (
        batch.was_first
        and batch.base_sequence > 0
        and (not batch.is_uncertain or _is_known_to_be_lost(error, age_ms))
        and "known_crc32c" not in error.details
    )


def _is_known_to_be_lost(error: OutOfOrderSequenceNumberError, age_ms: float) -> bool:
    """Whether no attempt was stored: a broker that had stored one would still know the producer.

    Brokers measure by the clock on the wall, so only half of their time counts.
    """
    remembered_ms = natural_number(error.details.get("producer_id_expiration_ms", ""))
    return remembered_ms is not None and age_ms < remembered_ms / 2


def is_missing_for_good(partition: PartitionBatches, batch: Batch, error: SemelError) -> bool:
    """Whether the batches behind a batch that is given up are never stored in its epoch."""
    is_first = batch.was_drained and batch is partition.in_flight[0]
    return is_first and isinstance(error, NOT_STORED) and not batch.is_uncertain


def not_in_time(
    batch: Batch, place: TopicPartition, timeout_ms: int, trouble: str
) -> RequestTimedOutError:
    """Return the error of a batch for ``place`` that was not acknowledged in time.

    ``trouble`` ends its text if the batch has no error of its own.
    """
    count = batch.record_count
    records = "1 record was" if count == 1 else f"{count:,} records were"
    return RequestTimedOutError(
        f"{place}: {records} not acknowledged in {timeout_ms} ms, {_sent(batch.attempts)}"
        f"{with_last_error(batch.trouble) or trouble}"
    )


def _sent(attempts: int) -> str:
    match attempts:
        case 0:
            return "never sent"
        case 1:
            return "sent once"
        case _:
            return f"sent {attempts} times"
