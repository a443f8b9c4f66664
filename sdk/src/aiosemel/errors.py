"""Every error that aiosemel raises: those of the protocol, and those that only a client can know.

Catch a class and do what its docstring says. Of a commit there are three outcomes, and each has a
form of its own: ``commit`` returns (committed), raises ``TransactionAbortedError`` (definitely not
committed), or raises ``TransactionOutcomeUnknownError`` (ask again).
"""

from semel_common.errors import (
    AbortableTransactionError,
    ApplicationRecoverableError,
    BrokerNotAvailableError,
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    CorruptMessageError,
    ErrorCode,
    FencedLeaderEpochError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    InconsistentClusterIdError,
    InvalidConfigError,
    InvalidGroupIdError,
    InvalidPartitionsError,
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    InvalidRecordError,
    InvalidRequestError,
    InvalidTopicError,
    InvalidTransactionTimeoutError,
    InvalidTxnStateError,
    KafkaStorageError,
    MessageTooLargeError,
    NetworkExceptionError,
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
    SemelError,
    StaleMemberEpochError,
    ThrottlingQuotaExceededError,
    TopicAlreadyExistsError,
    TransactionAbortableError,
    TransactionalIdNotFoundError,
    UnknownMemberIdError,
    UnknownServerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
    UnsupportedAssignorError,
)


class IllegalStateError(InvalidRequestError):
    """The call does not fit the state of the object it was made on; nothing has changed."""


class ClosedError(IllegalStateError):
    """The client, producer or consumer is not open: not yet, or no longer."""


class NoOffsetForPartitionError(OffsetOutOfRangeError):
    """The group has committed no offset for a partition, and the policy names no other start."""


class TransactionAbortedError(TransactionAbortableError):
    """The transaction did not commit, and never will: none of it is visible.

    Call ``abort``, then begin again. Where ``__cause__`` is an ``ApplicationRecoverableError``,
    this producer is done, and a new one must take its place.
    """


class TransactionOutcomeUnknownError(SemelError):
    """A commit was sent, and nobody said what became of it: it may have taken effect, or still may.

    The transaction is (``producer_id``, ``producer_epoch``). Call ``commit`` again to ask: it sends
    the same request, which never takes effect twice. Never treat this as an abort. Where
    ``can_ask_again`` is False a successor has taken over, and this producer will not be told.
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


__all__ = [
    "AbortableTransactionError",
    "ApplicationRecoverableError",
    "BrokerNotAvailableError",
    "ClosedError",
    "ConcurrentTransactionsError",
    "CoordinatorLoadInProgressError",
    "CoordinatorNotAvailableError",
    "CorruptMessageError",
    "ErrorCode",
    "FencedLeaderEpochError",
    "FencedMemberEpochError",
    "GroupIdNotFoundError",
    "GroupMaxSizeReachedError",
    "IllegalStateError",
    "InconsistentClusterIdError",
    "InvalidConfigError",
    "InvalidGroupIdError",
    "InvalidPartitionsError",
    "InvalidProducerEpochError",
    "InvalidProducerIdMappingError",
    "InvalidRecordError",
    "InvalidRequestError",
    "InvalidTopicError",
    "InvalidTransactionTimeoutError",
    "InvalidTxnStateError",
    "KafkaStorageError",
    "MessageTooLargeError",
    "NetworkExceptionError",
    "NoOffsetForPartitionError",
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
    "SemelError",
    "StaleMemberEpochError",
    "ThrottlingQuotaExceededError",
    "TopicAlreadyExistsError",
    "TransactionAbortableError",
    "TransactionAbortedError",
    "TransactionOutcomeUnknownError",
    "TransactionalIdNotFoundError",
    "UnknownMemberIdError",
    "UnknownServerError",
    "UnknownTopicIdError",
    "UnknownTopicOrPartitionError",
    "UnstableOffsetCommitError",
    "UnsupportedAssignorError",
]
