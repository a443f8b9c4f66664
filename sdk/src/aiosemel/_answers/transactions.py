"""The answers of coordinators about producers and transactions."""

from collections.abc import Sequence

from aiosemel._answers.fields import (
    Unfit,
    at_least,
    distinct,
    identified,
    is_refused,
    moment,
    named_participants,
    one_of,
    paired,
    same,
    token,
)
from aiosemel._answers.registry import Checks
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import history_pb2 as history
from semel.coordinator.v1 import outcomes_pb2 as outcomes
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel_common.wire import methods

CHECKS = Checks()
CHECKS.says_nothing(
    methods.ADD_PARTITIONS_TO_TXN,
    methods.ADD_OFFSETS_TO_TXN,
    methods.COMPLETE_PREPARED_TXN,
    methods.KEEP_ALIVE_TXN,
)

_OUTCOMES = frozenset(outcomes.TransactionOutcome.values()) - {
    outcomes.TRANSACTION_OUTCOME_UNSPECIFIED
}
_ENDS = frozenset({outcomes.TRANSACTION_OUTCOME_COMMITTED, outcomes.TRANSACTION_OUTCOME_ABORTED})
_RESULTS = frozenset(participants.TransactionResult.values()) - {
    participants.TRANSACTION_RESULT_UNSPECIFIED
}


@CHECKS.of(methods.INIT_PRODUCER_ID)
def _init_producer_id(
    request: transactions.InitProducerIdRequest, answer: transactions.InitProducerIdResponse
) -> None:
    at_least("producer_id", answer.producer_id, 1)
    at_least("producer_epoch", answer.producer_epoch)
    token("producer_token", answer.producer_token)
    at_least("transactional_id_expiration_ms", answer.transactional_id_expiration_ms)
    if answer.prepared and not request.keep_prepared:
        raise Unfit("number of prepared", len(answer.prepared), "was not asked for")
    for transaction in answer.prepared:
        at_least("prepared.producer_epoch", transaction.producer_epoch)
        if transaction.producer_epoch >= answer.producer_epoch:
            raise Unfit("prepared.producer_epoch", transaction.producer_epoch, "is not older")
        moment("prepared.start_time_ms", transaction.start_time_ms)
        moment("prepared.prepared_time_ms", transaction.prepared_time_ms)
    distinct("prepared.producer_epoch", (each.producer_epoch for each in answer.prepared))


@CHECKS.of(methods.END_TXN)
def _end_txn(request: transactions.EndTxnRequest, answer: transactions.EndTxnResponse) -> None:
    _next_transaction(request, answer)


@CHECKS.of(methods.PREPARE_TXN)
def _prepare_txn(
    request: transactions.PrepareTxnRequest, answer: transactions.PrepareTxnResponse
) -> None:
    _next_transaction(request, answer)


def _next_transaction(
    request: transactions.EndTxnRequest | transactions.PrepareTxnRequest,
    answer: transactions.EndTxnResponse | transactions.PrepareTxnResponse,
) -> None:
    """Check that the next transaction is a newer one, of this producer or in place of it."""
    at_least("producer_id", answer.producer_id, 1)
    is_same = answer.producer_id == request.producer_id
    at_least("producer_epoch", answer.producer_epoch, request.producer_epoch + 1 if is_same else 0)


# -- joint transactions --------------------------------------------------------------------------


@CHECKS.of(methods.JOIN_TXN)
def _join_txn(request: transactions.JoinTxnRequest, answer: transactions.JoinTxnResponse) -> None:
    del request  # The transaction is not repeated.
    if not answer.already_committed:
        at_least("producer_id", answer.producer_id, 1)
        at_least("producer_epoch", answer.producer_epoch)
        token("producer_token", answer.producer_token)


@CHECKS.of(methods.END_JOINT_TXN)
def _end_joint_txn(
    request: transactions.EndJointTxnRequest, answer: transactions.EndJointTxnResponse
) -> None:
    one_of("result", answer.result, _RESULTS)
    if request.result == participants.TRANSACTION_RESULT_COMMIT:
        same("result", answer.result, request.result)


# -- descriptions --------------------------------------------------------------------------------


@CHECKS.of(methods.DESCRIBE_TRANSACTIONS)
def _describe_transactions(
    request: transactions.DescribeTransactionsRequest,
    answer: transactions.DescribeTransactionsResponse,
) -> None:
    for asked, each in paired("descriptions", request.transactional_ids, answer.descriptions):
        same("descriptions.transactional_id", each.transactional_id, asked)
        if not is_refused("descriptions", each):
            _description(each)


def _description(described: transactions.TransactionalIdDescription) -> None:
    at_least("descriptions.producer_id", described.producer_id)
    at_least("descriptions.producer_epoch", described.producer_epoch, -1)
    at_least("descriptions.transaction_timeout_ms", described.transaction_timeout_ms)
    for transaction in described.transactions:
        at_least("transactions.producer_id", transaction.producer_id)
        at_least("transactions.producer_epoch", transaction.producer_epoch)
        moment("transactions.start_time_ms", transaction.start_time_ms)
        moment("transactions.prepared_time_ms", transaction.prepared_time_ms)
        named_participants("participants", transaction.participants)
        named_participants("missing_markers", transaction.missing_markers)
        moment("transactions.decided_time_ms", transaction.decided_time_ms)
    if described.HasField("joint"):
        _joint(described.joint)


def _joint(joint: transactions.JointDescription) -> None:
    at_least("joint.committed_version", joint.committed_version, -1)
    at_least("joint.open_version", joint.open_version, -1)
    moment("joint.start_time_ms", joint.start_time_ms)
    moment("joint.kept_alive_ms", joint.kept_alive_ms)
    for writer in joint.writers:
        at_least("writers.producer_id", writer.producer_id, 1)
        at_least("writers.producer_epoch", writer.producer_epoch)


@CHECKS.of(methods.LIST_TRANSACTIONS)
def _list_transactions(
    request: transactions.ListTransactionsRequest, answer: transactions.ListTransactionsResponse
) -> None:
    # The service knows best what filters match, and one id may have many entries on a page.
    names = {each.transactional_id for each in answer.transactions}
    if request.limit and len(names) > request.limit:
        raise Unfit("number of transactional ids", len(names), f"is over {request.limit}")
    for transaction in answer.transactions:
        identified("transactions.transactional_id", transaction.transactional_id)
        at_least("transactions.producer_id", transaction.producer_id)
        at_least("transactions.producer_epoch", transaction.producer_epoch, -1)
        at_least("transactions.incomplete_transactions", transaction.incomplete_transactions)
        at_least("transactions.transaction_timeout_ms", transaction.transaction_timeout_ms)
        at_least("transactions.fenced_transactions", transaction.fenced_transactions)
        at_least("transactions.joint_writers", transaction.joint_writers)
        moment("transactions.start_time_ms", transaction.start_time_ms)
        moment("transactions.last_update_time_ms", transaction.last_update_time_ms)


@CHECKS.of(methods.LIST_TRANSACTION_HISTORY)
def _list_transaction_history(
    request: history.ListTransactionHistoryRequest, answer: history.ListTransactionHistoryResponse
) -> None:
    if request.limit and len(answer.transactions) > request.limit:
        raise Unfit("number of transactions", len(answer.transactions), f"is over {request.limit}")
    for ended in answer.transactions:
        identified("transactions.position", ended.position)
        identified("transactions.transactional_id", ended.transactional_id)
        if request.transactional_id:
            same("transactions.transactional_id", ended.transactional_id, request.transactional_id)
        at_least("transactions.producer_id", ended.producer_id, 1)
        at_least("transactions.producer_epoch", ended.producer_epoch)
        at_least("transactions.txn_version", ended.txn_version, -1)
        one_of("transactions.outcome", ended.outcome, _ENDS)
        moment("transactions.start_time_ms", ended.start_time_ms)
        moment("transactions.prepared_time_ms", ended.prepared_time_ms)
        moment("transactions.decided_time_ms", ended.decided_time_ms)
        moment("transactions.completed_time_ms", ended.completed_time_ms)
        at_least("transactions.participant_count", ended.participant_count, len(ended.participants))
        for each in ended.participants:
            moment("participants.marker_time_ms", each.marker_time_ms)
            if not each.participant.HasField("group_id"):
                at_least("participants.partition", each.participant.topic_partition.partition)
                identified("participants.topic_id", each.participant.topic_partition.topic_id)
    _newest_first("transactions.position", [ended.position for ended in answer.transactions])


@CHECKS.of(methods.LIST_AUDIT)
def _list_audit(request: history.ListAuditRequest, answer: history.ListAuditResponse) -> None:
    if request.limit and len(answer.entries) > request.limit:
        raise Unfit("number of entries", len(answer.entries), f"is over {request.limit}")
    for entry in answer.entries:
        identified("entries.position", entry.position)
        identified("entries.action", entry.action)
        moment("entries.time_ms", entry.time_ms)
    _newest_first("entries.position", [entry.position for entry in answer.entries])


def _newest_first(field: str, positions: Sequence[str]) -> None:
    """Check that positions are in the order of a list that begins with the last entry."""
    distinct(field, positions)
    if list(positions) != sorted(positions, reverse=True):
        raise Unfit(field, positions[0], "is not in order")


@CHECKS.of(methods.GET_TRANSACTION_OUTCOME)
def _get_outcome(
    request: outcomes.GetTransactionOutcomeRequest, answer: outcomes.GetTransactionOutcomeResponse
) -> None:
    one_of("outcome", answer.outcome, _OUTCOMES)
    at_least("current_epoch", answer.current_epoch, -1)
    at_least("time_left_ms", answer.time_left_ms)
    at_least("producer_id", answer.producer_id)
    is_forgotten = answer.outcome == outcomes.TRANSACTION_OUTCOME_TOO_OLD_TO_KNOW
    if request.producer_id and not is_forgotten:
        same("producer_id", answer.producer_id, request.producer_id)


@CHECKS.of(methods.ABORT_TRANSACTION)
def _abort_transaction(
    request: outcomes.AbortTransactionRequest, answer: outcomes.AbortTransactionResponse
) -> None:
    del request  # The transaction is not repeated.
    at_least("participants", answer.participants)


@CHECKS.of(methods.FENCE_PRODUCER)
def _fence_producer(
    request: outcomes.FenceProducerRequest, answer: outcomes.FenceProducerResponse
) -> None:
    del request  # The transactional id is not repeated.
    at_least("producer_id", answer.producer_id)
    at_least("fenced_epoch", answer.fenced_epoch)
    at_least("participants", answer.participants)
