"""Every error of the protocol: Kafka's names, in classes that say what the caller must do.

The classes follow KIP-1050. A caller that catches one of the seven general classes and does what
its docstring says is correct; the leaves exist for those who want to know more. ``docs/errors.md``
lists them all. How errors travel is the business of ``semel_common.wire.status``.
"""

from typing import ClassVar, Self

from semel_common.error_codes import ErrorClass, ErrorCode


class SemelError(Exception):
    """Any error of the protocol.

    ``details`` holds the facts of the message for programs, as strings; they cross the wire.
    """

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR
    error_class: ClassVar[ErrorClass] = ErrorClass.FATAL

    def __init__(self, message: str, **details: str | int) -> None:
        """Say what is wrong: lower case, no full stop, the thing and both values."""
        super().__init__(message)
        self.message = message
        self.details = {name: str(value) for name, value in details.items()}

    def as_value(self) -> Self:
        """Return it to be kept as a value: without the frames that raised it, and all they hold."""
        return self.with_traceback(None)


class RetriableError(SemelError):
    """Send the same request again, after a pause."""

    error_class = ErrorClass.RETRIABLE


class RefreshRetriableError(RetriableError):
    """Ask for metadata or the coordinator again, then send the same request there."""

    error_class = ErrorClass.REFRESH_RETRIABLE


class AbortableTransactionError(SemelError):
    """Abort the transaction; then the producer may go on."""

    error_class = ErrorClass.ABORTABLE_TRANSACTION


class ApplicationRecoverableError(SemelError):
    """This producer or member is done; a new one may go on in its place."""

    error_class = ErrorClass.APPLICATION_RECOVERABLE


class InvalidRequestError(SemelError):
    """The call itself is wrong: the caller's bug, or the user's."""

    code = ErrorCode.INVALID_REQUEST
    error_class = ErrorClass.INVALID_REQUEST


class InvalidConfigurationError(SemelError):
    """Who calls is not as the cluster wants it: its configuration has to be mended."""

    error_class = ErrorClass.INVALID_CONFIGURATION


class UnknownServerError(SemelError):
    """The server broke an assumption of its own; its log says more."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


# -- retriable -----------------------------------------------------------------------------------


class RequestTimedOutError(RefreshRetriableError):
    """No answer within the time given. What was asked may have happened.

    Who does not answer may have been replaced, at another address.
    """

    code = ErrorCode.REQUEST_TIMED_OUT


class NetworkExceptionError(RefreshRetriableError):
    """The connection broke, or there was none. What was asked may have happened."""

    code = ErrorCode.NETWORK_EXCEPTION


class CoordinatorLoadInProgressError(RetriableError):
    """The coordinator is reading its journal."""

    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class ConcurrentTransactionsError(RetriableError):
    """Too many transactions of this id wait for their markers."""

    code = ErrorCode.CONCURRENT_TRANSACTIONS


class KafkaStorageError(RetriableError):
    """The server could not write its journal. What was asked may have happened."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class UnstableOffsetCommitError(RetriableError):
    """An open transaction may still change this offset."""

    code = ErrorCode.UNSTABLE_OFFSET_COMMIT


class UnreleasedInstanceIdError(RetriableError):
    """Another member has the group instance id; it is free once that one leaves or times out.

    Kafka takes this for fatal, so that a process killed and started again must be started until the
    session of its predecessor is over.
    """

    code = ErrorCode.UNRELEASED_INSTANCE_ID


class ThrottlingQuotaExceededError(RetriableError):
    """A limit of the server is reached: nothing was stored."""

    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED


# -- refresh, then retry -------------------------------------------------------------------------


class CoordinatorNotAvailableError(RefreshRetriableError):
    """Nobody is known yet who is in charge of this key."""

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
    """No such topic or partition here; perhaps not yet."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class UnknownTopicIdError(RefreshRetriableError):
    """No topic with this id here; perhaps not yet."""

    code = ErrorCode.UNKNOWN_TOPIC_ID


class BrokerNotAvailableError(RefreshRetriableError):
    """No broker is there that could do this."""

    code = ErrorCode.BROKER_NOT_AVAILABLE


# -- abort the transaction -----------------------------------------------------------------------


class TransactionAbortableError(AbortableTransactionError):
    """The transaction can only be aborted, or was: ``details`` has reason and next epoch."""

    code = ErrorCode.TRANSACTION_ABORTABLE


class InvalidTxnStateError(AbortableTransactionError):
    """The request does not fit the state of the transaction: ``details`` has it."""

    code = ErrorCode.INVALID_TXN_STATE


class InvalidProducerEpochError(AbortableTransactionError):
    """A newer epoch of this producer was seen; the coordinator knows whose."""

    code = ErrorCode.INVALID_PRODUCER_EPOCH


class OutOfOrderSequenceNumberError(AbortableTransactionError):
    """A batch before this one is missing, or another batch was sent under its sequence."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class BaseOffsetMismatchError(AbortableTransactionError):
    """The log does not end where the append was to begin: nothing of it was stored."""

    code = ErrorCode.BASE_OFFSET_MISMATCH

    @property
    def log_end_offset(self) -> int:
        """Where the log ended: what to read up to before trying again."""
        return int(self.details["log_end_offset"])


# -- a new producer or member --------------------------------------------------------------------


class ProducerFencedError(ApplicationRecoverableError):
    """A successor with the same transactional id has taken over."""

    code = ErrorCode.PRODUCER_FENCED


class InvalidProducerIdMappingError(ApplicationRecoverableError):
    """The transactional id is unknown, or belongs to another producer id."""

    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class InvalidProducerTokenError(ApplicationRecoverableError):
    """Nothing proves that the producer id is the caller's: ``producer_token`` is wrong, or missing.

    Also what happens to a producer that lives longer than the secret that its token was made with.
    """

    code = ErrorCode.INVALID_PRODUCER_TOKEN


class UnknownMemberIdError(ApplicationRecoverableError):
    """The group has no such member, or no longer."""

    code = ErrorCode.UNKNOWN_MEMBER_ID


class FencedInstanceIdError(ApplicationRecoverableError):
    """Another member has taken over the group instance id: this one must end."""

    code = ErrorCode.FENCED_INSTANCE_ID


class FencedMemberEpochError(ApplicationRecoverableError):
    """The member's epoch is not the one that the group gave it: join again."""

    code = ErrorCode.FENCED_MEMBER_EPOCH


class StaleMemberEpochError(ApplicationRecoverableError):
    """The member's epoch is old: heartbeat, then try again with the new one."""

    code = ErrorCode.STALE_MEMBER_EPOCH


# -- between services ----------------------------------------------------------------------------


class TransactionCoordinatorFencedError(SemelError):
    """A newer owner of the transaction-log partition has spoken already."""

    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


class InconsistentClusterIdError(SemelError):
    """The other side belongs to another cluster, and did nothing: make a new client."""

    code = ErrorCode.INCONSISTENT_CLUSTER_ID


class StaleClaimEpochError(SemelError):
    """An instance's journal was restored from an old backup, or is a copy."""

    code = ErrorCode.STALE_CLAIM_EPOCH


# -- mend the configuration ----------------------------------------------------------------------


class SaslAuthenticationError(InvalidConfigurationError):
    """Who calls has not proven who it is, or not any more: nothing was done."""

    code = ErrorCode.SASL_AUTHENTICATION_FAILED


# -- fix the call --------------------------------------------------------------------------------


class OffsetOutOfRangeError(InvalidRequestError):
    """The log does not hold this offset: ``details`` has log_start_offset and high_watermark."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class CorruptMessageError(InvalidRequestError):
    """The CRC does not fit what arrived."""

    code = ErrorCode.CORRUPT_MESSAGE


class MessageTooLargeError(InvalidRequestError):
    """A batch or a request is over the limit in ``details``."""

    code = ErrorCode.MESSAGE_TOO_LARGE


class OffsetMetadataTooLargeError(InvalidRequestError):
    """The metadata of an offset commit is over the limit."""

    code = ErrorCode.OFFSET_METADATA_TOO_LARGE


class InvalidTopicError(InvalidRequestError):
    """Not a legal name of a topic."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class InvalidGroupIdError(InvalidRequestError):
    """Not a legal group id."""

    code = ErrorCode.INVALID_GROUP_ID


class TopicAlreadyExistsError(InvalidRequestError):
    """There is a topic with this name."""

    code = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidPartitionsError(InvalidRequestError):
    """Not a possible number of partitions."""

    code = ErrorCode.INVALID_PARTITIONS


class InvalidConfigError(InvalidRequestError):
    """An option is wrong, or in conflict with another."""

    code = ErrorCode.INVALID_CONFIG


class PolicyViolationError(InvalidRequestError):
    """The topic's options do not allow it."""

    code = ErrorCode.POLICY_VIOLATION


class InvalidTransactionTimeoutError(InvalidRequestError):
    """The transaction time-out is not positive, or over the server's limit."""

    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT


class OperationNotAttemptedError(InvalidRequestError):
    """Another part of the same request was refused, so this one was not tried."""

    code = ErrorCode.OPERATION_NOT_ATTEMPTED


class GroupIdNotFoundError(InvalidRequestError):
    """There is no such group."""

    code = ErrorCode.GROUP_ID_NOT_FOUND


class NonEmptyGroupError(InvalidRequestError):
    """The group has members: this is only for groups that have none."""

    code = ErrorCode.NON_EMPTY_GROUP


class GroupSubscribedToTopicError(InvalidRequestError):
    """A member of the group reads the topic, so the group's offsets of it stay."""

    code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


class GroupMaxSizeReachedError(InvalidRequestError):
    """The group has as many members as it may have."""

    code = ErrorCode.GROUP_MAX_SIZE_REACHED


class InvalidRecordError(InvalidRequestError):
    """A batch breaks the rules of batches."""

    code = ErrorCode.INVALID_RECORD


class TransactionalIdNotFoundError(InvalidRequestError):
    """There is no such transactional id."""

    code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


class JointOwnerMismatchError(InvalidRequestError):
    """The transactional id belongs to another owner of joint transactions: ``details`` has it."""

    code = ErrorCode.JOINT_OWNER_MISMATCH


class UnsupportedAssignorError(InvalidRequestError):
    """The group coordinator has no assignor of this name."""

    code = ErrorCode.UNSUPPORTED_ASSIGNOR


# -- not allowed ---------------------------------------------------------------------------------


class AuthorizationError(InvalidRequestError):
    """The caller may not do this: somebody has to allow it (`semel acls add`) first."""


class TopicAuthorizationFailedError(AuthorizationError):
    """The caller may not do this to the topic, whether or not there is one."""

    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class GroupAuthorizationFailedError(AuthorizationError):
    """The caller may not do this to the group, whether or not there is one."""

    code = ErrorCode.GROUP_AUTHORIZATION_FAILED


class TransactionalIdAuthorizationFailedError(AuthorizationError):
    """The caller may not do this to the transactional id, whether or not there is one."""

    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class ClusterAuthorizationFailedError(AuthorizationError):
    """The caller may not do this to the cluster."""

    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
