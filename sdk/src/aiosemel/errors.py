"""Every error that aiosemel raises: errors of the protocol, and errors that only a client can know.

Catch a class and do what its docstring says. A commit ends in one of three ways: ``commit`` returns
(committed), raises ``TransactionAbortedError`` (definitely not committed), or raises
``TransactionOutcomeUnknownError`` (its ``resolve()`` finds out).
"""

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from aiosemel.types.transaction_outcomes import Resolution
from semel_common.client_errors import InvalidResponseError, SslAuthenticationError
from semel_common.error_codes import ErrorCode
from semel_common.errors import (
    AbortableTransactionError,
    ApplicationRecoverableError,
    AuthorizationError,
    BaseOffsetMismatchError,
    BrokerNotAvailableError,
    ClusterAuthorizationFailedError,
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    CorruptMessageError,
    FencedInstanceIdError,
    FencedLeaderEpochError,
    FencedMemberEpochError,
    GroupAuthorizationFailedError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    GroupSubscribedToTopicError,
    InconsistentClusterIdError,
    InvalidConfigError,
    InvalidConfigurationError,
    InvalidGroupIdError,
    InvalidPartitionsError,
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    InvalidProducerTokenError,
    InvalidRecordError,
    InvalidRequestError,
    InvalidTopicError,
    InvalidTransactionTimeoutError,
    InvalidTxnStateError,
    JointOwnerMismatchError,
    KafkaStorageError,
    MessageTooLargeError,
    NetworkExceptionError,
    NonEmptyGroupError,
    NotCoordinatorError,
    NotLeaderOrFollowerError,
    OffsetMetadataTooLargeError,
    OffsetOutOfRangeError,
    OperationNotAttemptedError,
    OutOfOrderSequenceNumberError,
    ProducerFencedError,
    RefreshRetriableError,
    RequestTimedOutError,
    RetriableError,
    SaslAuthenticationError,
    SemelError,
    StaleMemberEpochError,
    ThrottlingQuotaExceededError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    TopicNotFoundError,
    TransactionAbortableError,
    TransactionalIdAuthorizationFailedError,
    TransactionalIdNotFoundError,
    UnknownMemberIdError,
    UnknownServerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnreleasedInstanceIdError,
    UnstableOffsetCommitError,
    UnsupportedAssignorError,
)

L = TypeVar("L")


class Resolver(Protocol):
    """Finds out the outcome of a commit."""

    async def resolve(self, timeout_ms: int | None) -> Resolution:
        """See ``TransactionOutcomeUnknownError.resolve``."""
        ...


class IllegalStateError(InvalidRequestError):
    """The call does not fit the state of its object, and changed nothing."""


class ClosedError(IllegalStateError):
    """The client, producer or consumer is not open yet, or is closed already."""


class IncompleteListError(RequestTimedOutError, Generic[L]):
    """Some instances did not answer a call that lists what all of them have.

    ``partial`` is the list of the others, of the type that the call returns. ``errors`` has the
    last error of each instance that did not answer, by its name, such as ``coordinator-1``.
    """

    def __init__(self, *, partial: L, errors: Mapping[str, RetriableError]) -> None:
        reasons = "; ".join(f"{name}: {error.message}" for name, error in errors.items())
        super().__init__(f"the list lacks the entries of some instances: {reasons}")
        self.partial = partial
        self.errors = errors


class NoFreeProducerError(RetriableError):
    """Every producer of a pool was in use for ``acquire_timeout_ms``: no transaction has begun."""

    code = ErrorCode.REQUEST_TIMED_OUT


class NoOffsetForPartitionError(OffsetOutOfRangeError):
    """The group has committed no offset for a partition, and the policy names no other start."""


class TransactionAbortedError(TransactionAbortableError):
    """The transaction did not commit, and never will: none of it is visible.

    Call ``abort``, then begin again. If ``__cause__`` is an ``ApplicationRecoverableError``, or a
    ``ClosedError`` because the producer was closed during the transaction, this producer is done:
    make a new one.
    """


class TransactionOutcomeUnknownError(SemelError):
    """A commit was sent, and its answer is missing: it may have taken effect, or still may.

    The transaction is (``producer_id``, ``producer_epoch``). Await ``resolve()``, which returns the
    outcome and the producer's next step; or call ``commit`` again: it sends the same request, which
    never takes effect twice. Never treat this error as an abort. If ``can_ask_again`` is False,
    this producer is done, most likely because a successor has taken over, and only ``resolve()``
    can find out the outcome.
    """

    code = ErrorCode.REQUEST_TIMED_OUT

    def __init__(
        self,
        message: str,
        *,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        can_ask_again: bool,
    ) -> None:
        super().__init__(
            message,
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.can_ask_again = can_ask_again
        self.resolver: Resolver | None = None
        """The producer that committed sets it."""

    async def resolve(self, *, timeout_ms: int | None = None) -> Resolution:
        """Ask until the outcome is known; return it, with the producer's next step.

        Sends the commit again as long as this producer may; later, only asks. Without a time-out,
        the call ends when the cluster can be reached: an uncommitted transaction aborts at the end
        of its transaction time-out. The coordinator answers TOO_OLD_TO_KNOW only if 256 later
        transactions of the id have ended, or the id has expired. Any number of tasks may wait for
        the outcome. Raises RequestTimedOutError after ``timeout_ms``, or up to
        ``cancelled_commit_grace_ms`` later if a commit is on its way; call again then, and also
        after a cancellation. Raises InvalidResponseError if the answers of the coordinator cannot
        be used: the outcome is still unknown then. Raises ClosedError if the client is closed.
        """
        if self.resolver is None:
            raise IllegalStateError("only an error that a commit has raised can be resolved")
        return await self.resolver.resolve(timeout_ms)


class JointOutcomeUnknownError(SemelError):
    """A joint commit was sent, and its answer is missing.

    It may have taken effect, or still may. Call ``commit`` again with the same receipts: it sends
    the same request, which never takes effect twice. Never treat this as an abort.
    """

    code = ErrorCode.REQUEST_TIMED_OUT

    def __init__(self, message: str, *, transactional_id: str, txn_version: int) -> None:
        super().__init__(message, transactional_id=transactional_id, txn_version=txn_version)
        self.transactional_id = transactional_id
        self.txn_version = txn_version


class DatabaseUnavailableError(RetriableError):
    """The application's database did not answer, or asks its client to repeat the transaction.

    Loops of the SDK repeat it by themselves. ``__cause__`` is the error of the driver.
    """

    code = ErrorCode.REQUEST_TIMED_OUT


class DatabaseOutcomeUnknownError(DatabaseUnavailableError):
    """A commit of the database was not answered, and the program ends before the answer is known.

    It may have taken effect. Never treat this as an abort: the next start of the program finds out.
    """


class DatabaseTablesError(InvalidConfigurationError):
    """The database lacks a table or a column that Semel needs, or a right on one of them.

    ``python -m aiosemel.database sql --dialect …`` prints the statements that create the tables.
    """


class DatabaseSessionEndedError(IllegalStateError):
    """A handler ended the transaction of its session: it committed, or rolled back.

    Semel commits that transaction itself, together with the position of the records. Changes that
    the handler has committed stay in the database.
    """


class DatabasePositionMovedError(RetriableError):
    """Another instance has processed records of this transaction, so it was rolled back."""

    code = ErrorCode.CONCURRENT_TRANSACTIONS


class DatabaseBehindError(SemelError):
    """The database knows less than the cluster does: it was restored from a backup, or is new.

    The message has the numbers. ``after_restore`` of the call says how to go on.
    """

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class DatabaseAheadError(SemelError):
    """The database knows more than the cluster does: the cluster was restored from a backup.

    The message has the numbers. ``after_restore`` of the call says how to go on.
    """

    code = ErrorCode.OFFSET_OUT_OF_RANGE


__all__ = [
    "AbortableTransactionError",
    "ApplicationRecoverableError",
    "AuthorizationError",
    "BaseOffsetMismatchError",
    "BrokerNotAvailableError",
    "ClosedError",
    "ClusterAuthorizationFailedError",
    "ConcurrentTransactionsError",
    "CoordinatorLoadInProgressError",
    "CoordinatorNotAvailableError",
    "CorruptMessageError",
    "DatabaseAheadError",
    "DatabaseBehindError",
    "DatabaseOutcomeUnknownError",
    "DatabasePositionMovedError",
    "DatabaseSessionEndedError",
    "DatabaseTablesError",
    "DatabaseUnavailableError",
    "ErrorCode",
    "FencedInstanceIdError",
    "FencedLeaderEpochError",
    "FencedMemberEpochError",
    "GroupAuthorizationFailedError",
    "GroupIdNotFoundError",
    "GroupMaxSizeReachedError",
    "GroupSubscribedToTopicError",
    "IllegalStateError",
    "IncompleteListError",
    "InconsistentClusterIdError",
    "InvalidConfigError",
    "InvalidConfigurationError",
    "InvalidGroupIdError",
    "InvalidPartitionsError",
    "InvalidProducerEpochError",
    "InvalidProducerIdMappingError",
    "InvalidProducerTokenError",
    "InvalidRecordError",
    "InvalidRequestError",
    "InvalidResponseError",
    "InvalidTopicError",
    "InvalidTransactionTimeoutError",
    "InvalidTxnStateError",
    "JointOutcomeUnknownError",
    "JointOwnerMismatchError",
    "KafkaStorageError",
    "MessageTooLargeError",
    "NetworkExceptionError",
    "NoFreeProducerError",
    "NoOffsetForPartitionError",
    "NonEmptyGroupError",
    "NotCoordinatorError",
    "NotLeaderOrFollowerError",
    "OffsetMetadataTooLargeError",
    "OffsetOutOfRangeError",
    "OperationNotAttemptedError",
    "OutOfOrderSequenceNumberError",
    "ProducerFencedError",
    "RefreshRetriableError",
    "RequestTimedOutError",
    "RetriableError",
    "SaslAuthenticationError",
    "SemelError",
    "SslAuthenticationError",
    "StaleMemberEpochError",
    "ThrottlingQuotaExceededError",
    "TopicAlreadyExistsError",
    "TopicAuthorizationFailedError",
    "TopicNotFoundError",
    "TransactionAbortableError",
    "TransactionAbortedError",
    "TransactionOutcomeUnknownError",
    "TransactionalIdAuthorizationFailedError",
    "TransactionalIdNotFoundError",
    "UnknownMemberIdError",
    "UnknownServerError",
    "UnknownTopicIdError",
    "UnknownTopicOrPartitionError",
    "UnreleasedInstanceIdError",
    "UnstableOffsetCommitError",
    "UnsupportedAssignorError",
]
