"""Every error of the protocol: Kafka's names, in classes that say what the caller must do.

The classes follow KIP-1050. A caller that catches one of the seven general classes and does what
its docstring says is correct; a leaf whose docstring has an action of its own says it more exactly.
These docstrings are the one source of a client's actions for each error, outside of a transaction
and inside: `make docs` writes them into ``docs/reference/errors.md`` and ``docs/use/clients.md``.
How errors travel is the business of ``semel_common.wire.status``.
"""

from semel_common.error_classes import (
    AbortableTransactionError,
    ApplicationRecoverableError,
    AuthorizationError,
    InvalidConfigurationError,
    InvalidRequestError,
    RefreshRetriableError,
    RetriableError,
    SemelError,
)
from semel_common.error_codes import ErrorCode
from semel_common.request_errors import (
    ClusterAuthorizationFailedError,
    CorruptMessageError,
    GroupAuthorizationFailedError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    GroupSubscribedToTopicError,
    InvalidConfigError,
    InvalidGroupIdError,
    InvalidPartitionsError,
    InvalidRecordError,
    InvalidTopicError,
    InvalidTransactionTimeoutError,
    JointOwnerMismatchError,
    MessageTooLargeError,
    NonEmptyGroupError,
    OffsetMetadataTooLargeError,
    OffsetOutOfRangeError,
    OperationNotAttemptedError,
    PolicyViolationError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    TopicNotFoundError,
    TransactionalIdAuthorizationFailedError,
    TransactionalIdNotFoundError,
    UnsupportedAssignorError,
)

__all__ = [
    "AbortableTransactionError",
    "ApplicationRecoverableError",
    "AuthorizationError",
    "BaseOffsetMismatchError",
    "BrokerNotAvailableError",
    "ClusterAuthorizationFailedError",
    "ConcurrentTransactionsError",
    "CoordinatorLoadInProgressError",
    "CoordinatorNotAvailableError",
    "CorruptMessageError",
    "FencedInstanceIdError",
    "FencedLeaderEpochError",
    "FencedMemberEpochError",
    "GroupAuthorizationFailedError",
    "GroupIdNotFoundError",
    "GroupMaxSizeReachedError",
    "GroupSubscribedToTopicError",
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
    "InvalidTopicError",
    "InvalidTransactionTimeoutError",
    "InvalidTxnStateError",
    "JointOwnerMismatchError",
    "KafkaStorageError",
    "MessageTooLargeError",
    "NetworkExceptionError",
    "NonEmptyGroupError",
    "NotCoordinatorError",
    "NotLeaderOrFollowerError",
    "OffsetMetadataTooLargeError",
    "OffsetOutOfRangeError",
    "OperationNotAttemptedError",
    "OutOfOrderSequenceNumberError",
    "PolicyViolationError",
    "ProducerFencedError",
    "RefreshRetriableError",
    "RequestTimedOutError",
    "RetriableError",
    "SaslAuthenticationError",
    "SemelError",
    "StaleClaimEpochError",
    "StaleMemberEpochError",
    "ThrottlingQuotaExceededError",
    "TopicAlreadyExistsError",
    "TopicAuthorizationFailedError",
    "TopicNotFoundError",
    "TransactionAbortableError",
    "TransactionCoordinatorFencedError",
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


class UnknownServerError(SemelError):
    """The server broke an assumption of its own; its log says more."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


# -- retriable -----------------------------------------------------------------------------------


class RequestTimedOutError(RefreshRetriableError):
    """The answer did not come within the given time. The request may have taken effect.

    The instance may have been replaced by another one at another address.
    """

    code = ErrorCode.REQUEST_TIMED_OUT


class NetworkExceptionError(RefreshRetriableError):
    """The connection broke, or could not be made. The request may have taken effect."""

    code = ErrorCode.NETWORK_EXCEPTION


class CoordinatorLoadInProgressError(RetriableError):
    """The coordinator is reading its journal."""

    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class ConcurrentTransactionsError(RetriableError):
    """Too many transactions of this id wait for their markers."""

    code = ErrorCode.CONCURRENT_TRANSACTIONS


class KafkaStorageError(RetriableError):
    """The server could not write its journal. The request may have taken effect."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class UnstableOffsetCommitError(RetriableError):
    """An open transaction may still change this offset."""

    code = ErrorCode.UNSTABLE_OFFSET_COMMIT


class UnreleasedInstanceIdError(RetriableError):
    """Another member has the group instance id, until that member leaves or times out.

    A member that joins and takes over never gets this error. Kafka treats it as fatal: there, a
    killed process fails at each new start until the session of its predecessor is over.
    """

    code = ErrorCode.UNRELEASED_INSTANCE_ID


class ThrottlingQuotaExceededError(RetriableError):
    """A limit of the server is reached: nothing was stored."""

    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED


# -- refresh, then retry -------------------------------------------------------------------------


class CoordinatorNotAvailableError(RefreshRetriableError):
    """The instance does not know yet which instance is in charge of this key."""

    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class NotCoordinatorError(RefreshRetriableError):
    """Another instance is in charge of this key."""

    code = ErrorCode.NOT_COORDINATOR


class NotLeaderOrFollowerError(RefreshRetriableError):
    """Another broker leads this partition."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class FencedLeaderEpochError(RefreshRetriableError):
    """The caller's leader epoch is older than the partition's."""

    code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownTopicOrPartitionError(RefreshRetriableError):
    """The instance knows no such topic or partition, perhaps not yet.

    Outside of a transaction: ask `Metadata` with `from_controller`. If its answer is
    `TOPIC_NOT_FOUND`, give up; else do what the class says.

    Inside a transaction: the same, but abort the transaction before you give up. The group
    membership stays: keep up the heartbeats.
    """

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class UnknownTopicIdError(RefreshRetriableError):
    """The instance knows no topic with this id, perhaps not yet.

    Outside of a transaction: ask `Metadata` with `from_controller`. If its answer is
    `TOPIC_NOT_FOUND`, give up; else do what the class says.

    Inside a transaction: the same, but abort the transaction before you give up. The group
    membership stays: keep up the heartbeats.
    """

    code = ErrorCode.UNKNOWN_TOPIC_ID


class BrokerNotAvailableError(RefreshRetriableError):
    """No broker is available for this request."""

    code = ErrorCode.BROKER_NOT_AVAILABLE


# -- abort the transaction -----------------------------------------------------------------------


class TransactionAbortableError(AbortableTransactionError):
    """The transaction must abort, or is aborted: ``details`` has the reason and the next epoch.

    Outside of a transaction: only `JoinTxn` and `EndJointTxn` answer this error: do the version
    again.

    Inside a transaction: abort it as the class says. If `EndTxn` answers this error, the
    transaction is aborted already: go on with the epoch in `next_epoch`.
    """

    code = ErrorCode.TRANSACTION_ABORTABLE


class InvalidTxnStateError(AbortableTransactionError):
    """The request does not fit the state of the transaction, which ``details`` names.

    Outside of a transaction: end the producer's open transaction before you send records that are
    not transactional.

    Inside a transaction: abort it as the class says. If the details of `EndTxn` have an `outcome`,
    the transaction has ended that way: go on with the next epoch.
    """

    code = ErrorCode.INVALID_TXN_STATE


class InvalidProducerEpochError(AbortableTransactionError):
    """The producer has a newer epoch; the coordinator knows the owner of that epoch.

    Outside of a transaction: get another producer id with `InitProducerId`.

    Inside a transaction: abort it as the class says. If `EndTxn` then answers `PRODUCER_FENCED`, a
    successor has the transactional id: end.
    """

    code = ErrorCode.INVALID_PRODUCER_EPOCH


class OutOfOrderSequenceNumberError(AbortableTransactionError):
    """A batch before this one is missing, or another batch was sent under its sequence.

    Outside of a transaction: get another producer id with `InitProducerId`. Batches that were not
    acknowledged may be in the log.

    Inside a transaction: abort it as the class says.
    """

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class BaseOffsetMismatchError(AbortableTransactionError):
    """The log does not end at the expected base offset: the append stored no record.

    Outside of a transaction: read on up to `log_end_offset`, then decide again what to append.

    Inside a transaction: abort it as the class says, then the same.
    """

    code = ErrorCode.BASE_OFFSET_MISMATCH

    @property
    def log_end_offset(self) -> int:
        """The end of the log at the time: read up to it before you try again."""
        return int(self.details["log_end_offset"])


# -- a new producer or member --------------------------------------------------------------------


class ProducerFencedError(ApplicationRecoverableError):
    """A successor with the same transactional id has taken over.

    Outside of a transaction: end: a successor is at work.

    Inside a transaction: end: a successor is at work, and a transaction that was not committed is
    aborted. After a commit without an `outcome` in the details, ask `GetTransactionOutcome` first.
    """

    code = ErrorCode.PRODUCER_FENCED


class InvalidProducerIdMappingError(ApplicationRecoverableError):
    """The transactional id is unknown, or belongs to another producer id."""

    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class InvalidProducerTokenError(ApplicationRecoverableError):
    """The ``producer_token`` is wrong or missing: the caller must prove that it owns the id.

    A producer that lives longer than the secret of its token gets this error, too. The SDK then
    asks for another token by itself.

    Outside of a transaction: call `InitProducerId` again, and send the `producer_token` of its
    answer with each request.

    Inside a transaction: the same: `InitProducerId` aborts the open transaction.
    """

    code = ErrorCode.INVALID_PRODUCER_TOKEN


class UnknownMemberIdError(ApplicationRecoverableError):
    """The group has no such member, or has removed it.

    Outside of a transaction: join the group again, with `member_epoch` 0, and read on from the
    committed offsets.

    Inside a transaction: abort the transaction as `ABORTABLE_TRANSACTION` says, then the same. The
    producer goes on.
    """

    code = ErrorCode.UNKNOWN_MEMBER_ID


class FencedInstanceIdError(ApplicationRecoverableError):
    """Another process has joined with the group instance id.

    Outside of a transaction: end: the other process reads in this one's place.

    Inside a transaction: abort the transaction as `ABORTABLE_TRANSACTION` says, then end.
    """

    code = ErrorCode.FENCED_INSTANCE_ID


class FencedMemberEpochError(ApplicationRecoverableError):
    """The member's epoch is not the one that the group gave it.

    Outside of a transaction: join the group again, with `member_epoch` 0, and read on from the
    committed offsets.

    Inside a transaction: abort the transaction as `ABORTABLE_TRANSACTION` says, then the same. The
    producer goes on.
    """

    code = ErrorCode.FENCED_MEMBER_EPOCH


class StaleMemberEpochError(ApplicationRecoverableError):
    """The member's epoch is old, or the member does not hold the partition.

    Outside of a transaction: send a heartbeat, then commit again under the `member_epoch` of its
    answer, for the partitions that the member still holds.

    Inside a transaction: abort the transaction as `ABORTABLE_TRANSACTION` says, and send a
    heartbeat. The next transaction takes the partitions that the member still holds, under the
    `member_epoch` of the answer. Producer and member go on.
    """

    code = ErrorCode.STALE_MEMBER_EPOCH


# -- between services ----------------------------------------------------------------------------


class TransactionCoordinatorFencedError(SemelError):
    """The participant has heard from a newer owner of the transaction-log partition."""

    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


class InconsistentClusterIdError(SemelError):
    """The other side belongs to another cluster, and did nothing.

    Outside of a transaction: ask `Metadata` of the coordinators. If one belongs to your cluster,
    send the request where its answer says; else end.

    Inside a transaction: the same. A commit that was sent before keeps its unknown outcome.
    """

    code = ErrorCode.INCONSISTENT_CLUSTER_ID


class StaleClaimEpochError(SemelError):
    """The journal of an instance was restored from an old backup, or is a copy."""

    code = ErrorCode.STALE_CLAIM_EPOCH


# -- correct the configuration -------------------------------------------------------------------


class SaslAuthenticationError(InvalidConfigurationError):
    """The caller has not proven its identity, or its proof has expired: nothing was done."""

    code = ErrorCode.SASL_AUTHENTICATION_FAILED
