"""The classes of errors: what the caller must do. ``semel_common.errors`` has all errors."""

from copy import copy
from typing import ClassVar, Self

from semel_common.error_codes import ErrorClass, ErrorCode


class SemelError(Exception):
    """Any error of the protocol.

    Outside of a transaction: give up, and tell an operator.

    Inside a transaction: the same; the coordinator aborts the transaction when its time-out is
    over.
    """

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR
    error_class: ClassVar[ErrorClass] = ErrorClass.FATAL

    def __init__(self, message: str, /, **details: str | int) -> None:
        """Say what is wrong: lower case, no full stop; ``details`` are its facts for programs."""
        super().__init__(message)
        self.message = message
        self.details = {name: str(value) for name, value in details.items()}

    def as_value(self) -> Self:
        """Return it to be kept as a value: without the frames of it and its cause."""
        self.__cause__ = self.__context__ = None
        return self.with_traceback(None)

    def again(self) -> Self:
        """Return an equal error: one that is raised again keeps the frames of every caller."""
        return copy(self.as_value())


class RetriableError(SemelError):
    """Send the same request again, after a pause.

    Outside of a transaction: pause (50 ms, doubled up to 1 s, with jitter) and send the same
    request again, until the caller's time is up.

    Inside a transaction: the same; when the time is up, abort the transaction.
    """

    error_class = ErrorClass.RETRIABLE


class RefreshRetriableError(RetriableError):
    """Ask for metadata or the coordinator again, then send the same request there.

    Outside of a transaction: ask again which instance is in charge, pause as for `RETRIABLE`, and
    send the same request there, until the caller's time is up.

    Inside a transaction: the same; when the time is up, abort the transaction.
    """

    error_class = ErrorClass.REFRESH_RETRIABLE


class AbortableTransactionError(SemelError):
    """Abort the transaction; then the producer may go on.

    Outside of a transaction: do not send the request again: the row of the reason says what to do.

    Inside a transaction: send `EndTxn` with abort, and name every partition and group to which a
    request went; then do the work again in the next transaction.
    """

    error_class = ErrorClass.ABORTABLE_TRANSACTION


class ApplicationRecoverableError(SemelError):
    """This producer or member is done; a new one may go on in its place.

    Outside of a transaction: end, or go on as a new producer (`InitProducerId`) or as a new member
    (join with `member_epoch` 0).

    Inside a transaction: the same, and send nothing more in this transaction. After a commit, ask
    `GetTransactionOutcome` first.
    """

    error_class = ErrorClass.APPLICATION_RECOVERABLE


class InvalidRequestError(SemelError):
    """The request itself is wrong, or the caller may not make it.

    Outside of a transaction: give up at once: correct the request, or have an operator allow it.

    Inside a transaction: abort the transaction, then the same.
    """

    code = ErrorCode.INVALID_REQUEST
    error_class = ErrorClass.INVALID_REQUEST


class InvalidConfigurationError(SemelError):
    """The cluster rejects this client's configuration.

    Outside of a transaction: give up at once: correct the configuration, such as a token.

    Inside a transaction: the same; the coordinator aborts the transaction when its time-out is
    over.
    """

    error_class = ErrorClass.INVALID_CONFIGURATION


class AuthorizationError(InvalidRequestError):
    """The caller may not do this: an operator has to allow it (`semel acls add`) first."""
