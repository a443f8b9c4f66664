"""The one mapping of errors to gRPC statuses, ``ErrorInfo`` and values in responses, and back."""

import re

import grpc
from google.protobuf import any_pb2
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from semel.common.v1.errors_pb2 import Error
from semel_common import errors
from semel_common.client_errors import InvalidResponseError
from semel_common.error_codes import ErrorClass, ErrorCode
from semel_common.errors import SemelError
from semel_common.untrusted_text import printable

DOMAIN = "semel"
"""The domain of ``google.rpc.ErrorInfo``; its reason is the name of the ErrorCode."""
ERROR_CLASS = "error_class"
"""The key of its metadata that has the name of the ErrorClass; the rest are the details."""

_TEXT_MAX_BYTES = 1_200
"""Of a message or a detail: gRPC drops a call whose trailing metadata is larger than 8 KiB, and
sends the message in it twice."""
_STATUS_DETAILS_KEY = "grpc-status-details-bin"

MESSAGE_MAX_CHARACTERS = 4_096
"""A longer message of an error from the wire is cut off."""
DETAILS_MAX = 64
"""An error from the wire keeps so many details."""

_LAST_ERROR = "last error: "
_STATUS_AND_PEER = re.compile(r"^[A-Z_]+: (ip(v4|v6):\S+: )?")
"""Before the cause in texts of gRPC, as in ``UNAVAILABLE: ipv4:127.0.0.1:9092: Socket closed``."""
IS_UNIMPLEMENTED = "unimplemented"
"""The detail of the error of a call that the other side does not know."""
_TOO_LARGE = "message larger than max"

_STATUS_BY_CLASS: list[tuple[type[SemelError], grpc.StatusCode]] = [
    # The first class that fits counts.
    (errors.ConcurrentTransactionsError, grpc.StatusCode.ABORTED),
    (errors.ThrottlingQuotaExceededError, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (errors.RequestTimedOutError, grpc.StatusCode.DEADLINE_EXCEEDED),
    (errors.UnknownTopicOrPartitionError, grpc.StatusCode.NOT_FOUND),
    (errors.UnknownTopicIdError, grpc.StatusCode.NOT_FOUND),
    (errors.TopicNotFoundError, grpc.StatusCode.NOT_FOUND),
    (errors.TransactionalIdNotFoundError, grpc.StatusCode.NOT_FOUND),
    (errors.GroupIdNotFoundError, grpc.StatusCode.NOT_FOUND),
    (errors.TopicAlreadyExistsError, grpc.StatusCode.ALREADY_EXISTS),
    (errors.OffsetOutOfRangeError, grpc.StatusCode.OUT_OF_RANGE),
    (errors.RetriableError, grpc.StatusCode.UNAVAILABLE),
    (errors.AuthorizationError, grpc.StatusCode.PERMISSION_DENIED),
    (errors.InvalidProducerTokenError, grpc.StatusCode.PERMISSION_DENIED),
    (errors.AbortableTransactionError, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.ApplicationRecoverableError, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.TransactionCoordinatorFencedError, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.InconsistentClusterIdError, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.StaleClaimEpochError, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.NonEmptyGroupError, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.GroupSubscribedToTopicError, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.SaslAuthenticationError, grpc.StatusCode.UNAUTHENTICATED),
    (errors.InvalidRequestError, grpc.StatusCode.INVALID_ARGUMENT),
    (SemelError, grpc.StatusCode.INTERNAL),
]


def status_code_of(error: SemelError) -> grpc.StatusCode:
    """Return the gRPC status code of an error."""
    return next(status for cls, status in _STATUS_BY_CLASS if isinstance(error, cls))


def to_status(error: SemelError) -> status_pb2.Status:
    """Make the rich status of a failed call, with its ``ErrorInfo``."""
    details = {name: _shown(value) for name, value in error.details.items()}
    metadata = {**details, ERROR_CLASS: error.error_class.name}
    info = error_details_pb2.ErrorInfo(reason=error.code.name, domain=DOMAIN, metadata=metadata)
    packed = any_pb2.Any()
    packed.Pack(info, deterministic=True)
    message = _prefix(error.code.name, error.error_class.name) + _shown(error.message)
    return status_pb2.Status(code=status_code_of(error).value[0], message=message, details=[packed])


def _prefix(reason: str, error_class: str) -> str:
    """Return what the message of a status begins with: tools such as grpcurl show no ErrorInfo."""
    return f"{reason} ({error_class}): "


def _shown(text: str) -> str:
    """Return a text, cut to what fits into metadata: it may hold what a caller has sent."""
    if len(text) <= _TEXT_MAX_BYTES // 4:
        return text
    return text.encode(errors="replace")[:_TEXT_MAX_BYTES].decode(errors="ignore")


def from_rpc_error(error: grpc.aio.AioRpcError, address: str) -> SemelError:
    """Make the error of a call that failed: by its ``ErrorInfo``, else by gRPC's own status."""
    for key, value in error.trailing_metadata() or ():
        if key == _STATUS_DETAILS_KEY and isinstance(value, bytes):
            return _from_trailer(value, address)
    return _from_code(error.code(), _readable(error.details() or ""), address)


def from_library_error(_: grpc.aio.BaseError, address: str) -> errors.NetworkExceptionError:
    """Make the error of a call that gRPC's own code gave up, for its channel or stream has gone."""
    return errors.NetworkExceptionError(f"the connection to {address} broke")


def _from_code(code: grpc.StatusCode, details: str, address: str) -> SemelError:
    """Make the error of a call that gRPC itself ended, on this side or the other."""
    text = f"{address}: {_cause_in(details)}"
    match code:
        case grpc.StatusCode.OK:
            return InvalidResponseError(f"{address} ended a call without an answer")
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return errors.RequestTimedOutError(f"{address} did not answer in time")
        case (
            grpc.StatusCode.UNAVAILABLE
            | grpc.StatusCode.CANCELLED
            | grpc.StatusCode.INTERNAL
            | grpc.StatusCode.UNKNOWN
        ):
            # Without ErrorInfo, these are of gRPC or of a proxy: the connection was cut.
            return errors.NetworkExceptionError(text)
        case grpc.StatusCode.RESOURCE_EXHAUSTED if _TOO_LARGE in text.lower():
            # gRPC of this side refuses an answer over its limit: no quota is behind it.
            return InvalidResponseError(text)
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return errors.ThrottlingQuotaExceededError(text)
        case grpc.StatusCode.UNIMPLEMENTED:
            # An instance has moved, and a service of another kind is where it was.
            message = f"{text} (another service, or an older one)"
            return errors.NetworkExceptionError(message, **{IS_UNIMPLEMENTED: 1})
        case grpc.StatusCode.UNAUTHENTICATED:
            return errors.SaslAuthenticationError(text)
        case grpc.StatusCode.INVALID_ARGUMENT:
            return errors.InvalidRequestError(text)
        case _:
            return errors.UnknownServerError(f"{text} ({code.name})")


def _cause_in(details: str) -> str:
    """Return what gRPC says of the network, without the words that are of use to gRPC alone."""
    cause = details.rpartition(_LAST_ERROR)[2]
    return _STATUS_AND_PEER.sub("", cause) or "the connection has failed"


def to_value(error: SemelError) -> Error:
    """Make the form of an error that stands inside a response or a frame."""
    return Error(
        code=error.code.value,  # type: ignore[arg-type]  # equal numbers
        message=error.message,
        metadata=error.details,
        error_class=error.error_class.value,  # type: ignore[arg-type]  # equal numbers
    )


def from_value(value: Error) -> SemelError:
    """Make the error again that ``to_value`` was given."""
    return error_for(value.code, value.message, dict(value.metadata), value.error_class)


def error_for(
    code: int | str, message: str, details: dict[str, str], error_class: int = 0
) -> SemelError:
    """Make the error that a code stands for, given by its number or its name.

    A code of a newer release is an error of its general class; if that is not known either (0: an
    older server says none), UnknownServerError. A message is cut off where it is too long, and
    control characters are written as escapes.
    """
    message = _readable(message)
    details = {name: _readable(details[name]) for name in sorted(details)[:DETAILS_MAX]}
    try:
        known = ErrorCode[code] if isinstance(code, str) else ErrorCode(code)
    except (KeyError, ValueError):
        general = _BY_CLASS.get(error_class, errors.UnknownServerError)
        return general(f"{message} (error code {code})", **details)
    return _BY_CODE[known](message, **details)


def _from_trailer(trailer: bytes, address: str) -> SemelError:
    try:
        return _from_status(status_pb2.Status.FromString(trailer))
    except DecodeError:
        return InvalidResponseError(
            f"{address} answered with an error that cannot be read: its {_STATUS_DETAILS_KEY} of"
            f" {len(trailer):,} bytes is no google.rpc.Status",
            address=address,
        )


def _from_status(status: status_pb2.Status) -> SemelError:
    """Return the error of a status. Raises DecodeError."""
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info) and info.domain == DOMAIN:
            details = dict(info.metadata)
            named = details.pop(ERROR_CLASS, "")
            error_class = ErrorClass.__members__.get(named, 0)
            message = status.message.removeprefix(_prefix(info.reason, named))
            return error_for(info.reason, message, details, error_class)
    return errors.UnknownServerError(_readable(status.message))


def _readable(text: str) -> str:
    """Return a server's text as one line of bounded length: terminals and logs show it."""
    if len(text) > MESSAGE_MAX_CHARACTERS:
        text = f"{text[:MESSAGE_MAX_CHARACTERS]} … ({len(text):,} characters)"
    return printable(text)


_BY_CODE: dict[ErrorCode, type[SemelError]] = {
    cls.code: cls
    for cls in vars(errors).values()
    if isinstance(cls, type) and issubclass(cls, SemelError) and cls is not SemelError
    if "code" in vars(cls)
}
_BY_CLASS: dict[int, type[SemelError]] = {
    cls.error_class: cls
    for cls in (
        errors.RetriableError,
        errors.RefreshRetriableError,
        errors.AbortableTransactionError,
        errors.ApplicationRecoverableError,
        errors.InvalidRequestError,
        errors.InvalidConfigurationError,
    )
}
