"""The failures of a transformation: what went wrong first, and whose fault it is."""

from enum import Enum, auto

from aiosemel._shared.error_causes import causes
from aiosemel.errors import (
    AbortableTransactionError,
    ApplicationRecoverableError,
    GroupIdNotFoundError,
    InvalidRequestError,
    RetriableError,
    SemelError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
)
from aiosemel.types.consumer_records import ConsumerRecord

SERVER_ERRORS_MAX = 20
"""How many transactions in a row may fail before an error that a server cannot explain stops it."""
_TRANSIENT = (
    RetriableError,
    AbortableTransactionError,
    ApplicationRecoverableError,
    GroupIdNotFoundError,
)
"""Failures on the way. A group that is gone has lost its members: this one joins again. (The loop
has waited for a missing output topic already.)
"""


class HandlerError(Exception):
    """The handler raised its cause."""


class StopError(Exception):
    """The cause is to reach the user."""


class Fault(Enum):
    """The cause of a failure, as the loop acts on it."""

    ON_THE_WAY = auto()
    """A broker, a coordinator, a rebalance or a time-out: the loop repeats the records."""
    OF_RECORDS = auto()
    """The handler, or the contents: the loop tries the records one by one."""
    OF_PROGRAM = auto()
    """No repetition heals it."""


def fault_of(error: Exception, failures: int) -> Fault:
    """Return whose fault the last of so many failures in a row is."""
    cause = cause_of(error)
    is_missing_topic = isinstance(cause, UnknownTopicOrPartitionError)
    if isinstance(cause, UnknownServerError) and failures <= SERVER_ERRORS_MAX:
        return Fault.ON_THE_WAY
    if isinstance(cause, _TRANSIENT) and not is_missing_topic:
        return Fault.ON_THE_WAY
    if isinstance(error, StopError):
        return Fault.OF_PROGRAM
    if (
        isinstance(error, HandlerError)
        or isinstance(cause, InvalidRequestError)
        or is_missing_topic
    ):
        return Fault.OF_RECORDS
    return Fault.OF_PROGRAM


def cause_of(error: Exception) -> Exception:
    """Return the first error in the chain of causes, as far as the SDK knows its kind."""
    cause: Exception = error
    for found_error in causes(error):
        if isinstance(cause, (HandlerError, StopError)) or isinstance(found_error, SemelError):
            cause = found_error if isinstance(found_error, Exception) else cause
    return cause


def place_of(record: ConsumerRecord) -> str:
    """Return a record's place, for texts."""
    return f"the record at offset {record.offset} of {record.topic}-{record.partition}"
