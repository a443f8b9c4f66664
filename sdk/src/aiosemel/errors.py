"""Every error that aiosemel raises: errors of the protocol, and errors that only a client can know.

Catch a class and do what its docstring says. Of a commit there are three outcomes, and each has a
form of its own: ``commit`` returns (committed), raises ``TransactionAbortedError`` (definitely not
committed), or raises ``TransactionOutcomeUnknownError`` (its ``resolve()`` finds out).
"""

from typing import Protocol

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


class Resolver(Protocol):
    """Finds out what became of a commit."""

    async def resolve(self, timeout_ms: int | None) -> Resolution:
        """See ``TransactionOutcomeUnknownError.resolve``."""
        ...


class IllegalStateError(InvalidRequestError):
    """The call does not fit the state of the object it was made on; nothing has changed."""


class ClosedError(IllegalStateError):
    """The client, producer or consumer is not open: not yet, or no longer."""


class NoFreeProducerError(RetriableError):
    """Every producer of a pool was in use for ``acquire_timeout_ms``: nothing has begun."""

    code = ErrorCode.REQUEST_TIMED_OUT


class NoOffsetForPartitionError(OffsetOutOfRangeError):
    """The group has committed no offset for a partition, and the policy names no other start."""


class TransactionAbortedError(TransactionAbortableError):
    """The transaction did not commit, and never will: none of it is visible.

    Call ``abort``, then begin again. Where ``__cause__`` is an ``ApplicationRecoverableError``,
    this producer is done, and a new one must take its place; so it is where ``__cause__`` is a
    ``ClosedError``, because the producer was closed in the middle.
    """


class TransactionOutcomeUnknownError(SemelError):
    """A commit was sent, and its answer is missing: it may have taken effect, or still may.

    The transaction is (``producer_id``, ``producer_epoch``). Await ``resolve()`` to find out, and
    what to do next; or call ``commit`` again: it sends the same request, which never takes effect
    twice. Never treat this as an abort. Where ``can_ask_again`` is False this producer is done,
    most likely because a successor has taken over, and only ``resolve()`` can tell.
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
        """Set by the producer whose commit it was."""

    async def resolve(self, *, timeout_ms: int | None = None) -> Resolution:
        """Ask until the outcome is known; return it, with the producer's next step.

        Sends the commit again as long as this producer may; later, only asks. Without a time-out it
        ends when the cluster can be reached: an uncommitted transaction aborts at the end of its
        transaction time-out. TOO_OLD_TO_KNOW is answered only 256 transactions of the id later, or
        when the id has expired. Any number of tasks may wait for it. Raises RequestTimedOutError
        after ``timeout_ms``, and ``cancelled_commit_grace_ms`` if a commit is on its way then: call
        it again, as also when it was cancelled. Raises InvalidResponseError when the answers of the
        coordinator cannot be used: the outcome is still unknown then. Raises ClosedError when the
        client is closed.
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
    "ErrorCode",
    "FencedInstanceIdError",
    "FencedLeaderEpochError",
    "FencedMemberEpochError",
    "GroupAuthorizationFailedError",
    "GroupIdNotFoundError",
    "GroupMaxSizeReachedError",
    "GroupSubscribedToTopicError",
    "IllegalStateError",
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
