"""Errors of wrong or forbidden requests; ``semel_common.errors`` has all errors."""

from semel_common.error_classes import AuthorizationError, InvalidRequestError
from semel_common.error_codes import ErrorCode

# -- fix the call --------------------------------------------------------------------------------


class OffsetOutOfRangeError(InvalidRequestError):
    """The log does not hold this offset: ``details`` has log_start_offset and high_watermark.

    Outside of a transaction: read on at an offset in that range, or give up.

    Inside a transaction: abort the transaction, then the same.
    """

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class CorruptMessageError(InvalidRequestError):
    """The CRC of a received or stored batch is wrong: ``details`` names the place."""

    code = ErrorCode.CORRUPT_MESSAGE


class MessageTooLargeError(InvalidRequestError):
    """A batch or a request is over the limit in ``details``.

    Outside of a transaction: send fewer records at once, or smaller ones.

    Inside a transaction: abort the transaction, then the same.
    """

    code = ErrorCode.MESSAGE_TOO_LARGE


class OffsetMetadataTooLargeError(InvalidRequestError):
    """The metadata of an offset commit is over the limit."""

    code = ErrorCode.OFFSET_METADATA_TOO_LARGE


class InvalidTopicError(InvalidRequestError):
    """The name of the topic is invalid."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class InvalidGroupIdError(InvalidRequestError):
    """The group id is invalid."""

    code = ErrorCode.INVALID_GROUP_ID


class TopicAlreadyExistsError(InvalidRequestError):
    """A topic with this name exists already."""

    code = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidPartitionsError(InvalidRequestError):
    """The number of partitions is impossible."""

    code = ErrorCode.INVALID_PARTITIONS


class InvalidConfigError(InvalidRequestError):
    """An option is wrong, or in conflict with another."""

    code = ErrorCode.INVALID_CONFIG


class PolicyViolationError(InvalidRequestError):
    """The options of the topic forbid this request."""

    code = ErrorCode.POLICY_VIOLATION


class InvalidTransactionTimeoutError(InvalidRequestError):
    """The transaction time-out is not positive, or over the server's limit."""

    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT


class OperationNotAttemptedError(InvalidRequestError):
    """Another part of the same request was refused, so this one was not tried."""

    code = ErrorCode.OPERATION_NOT_ATTEMPTED


class GroupIdNotFoundError(InvalidRequestError):
    """No such group exists."""

    code = ErrorCode.GROUP_ID_NOT_FOUND


class NonEmptyGroupError(InvalidRequestError):
    """The group has members, and the request needs a group without members."""

    code = ErrorCode.NON_EMPTY_GROUP


class GroupSubscribedToTopicError(InvalidRequestError):
    """A member of the group reads the topic, so the group keeps its offsets of the topic."""

    code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


class GroupMaxSizeReachedError(InvalidRequestError):
    """The group has the maximum number of members."""

    code = ErrorCode.GROUP_MAX_SIZE_REACHED


class InvalidRecordError(InvalidRequestError):
    """A batch breaks the rules of batches."""

    code = ErrorCode.INVALID_RECORD


class TransactionalIdNotFoundError(InvalidRequestError):
    """No such transactional id exists."""

    code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


class TopicNotFoundError(InvalidRequestError):
    """No such topic exists: the controller knows none.

    Outside of a transaction: give up at once, or create the topic and send the request again.

    Inside a transaction: abort the transaction as `ABORTABLE_TRANSACTION` says, then the same. The
    group membership stays: keep up the heartbeats.
    """

    code = ErrorCode.TOPIC_NOT_FOUND


class JointOwnerMismatchError(InvalidRequestError):
    """The transactional id has another owner of joint transactions: ``details`` names it."""

    code = ErrorCode.JOINT_OWNER_MISMATCH


class UnsupportedAssignorError(InvalidRequestError):
    """The group coordinator has no assignor of this name."""

    code = ErrorCode.UNSUPPORTED_ASSIGNOR


# -- not allowed ---------------------------------------------------------------------------------


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
