"""ListTransactionHistory: transactions that have ended, page by page, the last one first."""

from dataclasses import dataclass

from semel.coordinator.v1 import history_pb2 as wire
from semel.coordinator.v1 import outcomes_pb2
from semel_coordinator.transactions.machine import (
    AbortReason,
    EndedTransaction,
    HistoryFilter,
    HistoryPosition,
    Outcome,
    TransactionLimits,
)
from semel_coordinator.transactions.machine.history.history_queries import listed
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import (
    require_count,
    require_int,
    require_known,
    require_name,
)
from semel_runtime.server.limits.list_turns import pause
from semel_runtime.server.pages import Page, PageTokens

_TOKENS = PageTokens("ListTransactionHistory")
_PIECE = 200
"""Transactions that a list looks at in one go, a millisecond."""

_OUTCOMES: dict[int, Outcome | None] = {
    outcomes_pb2.TRANSACTION_OUTCOME_UNSPECIFIED: None,
    outcomes_pb2.TRANSACTION_OUTCOME_COMMITTED: Outcome.COMMITTED,
    outcomes_pb2.TRANSACTION_OUTCOME_ABORTED: Outcome.ABORTED,
}
_OUTCOMES_BACK = {
    Outcome.COMMITTED: outcomes_pb2.TRANSACTION_OUTCOME_COMMITTED,
    Outcome.ABORTED: outcomes_pb2.TRANSACTION_OUTCOME_ABORTED,
}
REASONS: dict[outcomes_pb2.AbortReason.ValueType, AbortReason] = {
    outcomes_pb2.ABORT_REASON_CLIENT: AbortReason.CLIENT,
    outcomes_pb2.ABORT_REASON_TIMED_OUT: AbortReason.TIMED_OUT,
    outcomes_pb2.ABORT_REASON_FENCED: AbortReason.FENCED,
    outcomes_pb2.ABORT_REASON_OPERATOR: AbortReason.OPERATOR,
}
_REASONS_BACK = {reason: number for number, reason in REASONS.items()}


@dataclass(frozen=True, slots=True)
class HistoryLister:
    """Answers ListTransactionHistory."""

    parts: ServiceParts

    async def list_transaction_history(
        self, request: wire.ListTransactionHistoryRequest, _call: Call
    ) -> wire.ListTransactionHistoryResponse:
        """List a page of the history, in pieces, so that other callers wait little."""
        parts, history = self.parts, self.parts.machine.history
        parts.claim.check()
        wanted = _filter(request, parts.limits)
        page = Page(request.limit)
        behind = _TOKENS.position(request.page_token, request.behind, HistoryPosition.parsed)
        rings = await parts.runner.run(lambda: history.rings(wanted))
        oldest_ms = history.oldest_ms(wanted, now_ms=parts.clock.now_ms())
        response = wire.ListTransactionHistoryResponse()
        looked_at: HistoryPosition | None = behind
        for count, (position, ended) in enumerate(
            listed(rings, wanted, behind=behind, oldest_ms=oldest_ms), 1
        ):
            if ended is not None:
                entry = _entry(position, ended)
                if not page.takes(entry):
                    response.next_page_token = _TOKENS.after(str(looked_at))
                    return response
                response.transactions.append(entry)
            looked_at = position
            if not count % _PIECE:
                await pause()
        return response


def _filter(
    request: wire.ListTransactionHistoryRequest, limits: TransactionLimits
) -> HistoryFilter:
    """Read which transactions the caller asks for."""
    require_known("outcome", request.outcome, tuple(_OUTCOMES))
    require_count("abort_reasons", request.abort_reasons, maximum=len(REASONS))
    for index, reason in enumerate(request.abort_reasons):
        require_known(f"abort_reasons[{index}]", reason, tuple(REASONS))
    return HistoryFilter(
        outcome=_OUTCOMES[request.outcome],
        reasons=frozenset(REASONS[each] for each in request.abort_reasons),
        transactional_id=_text(request, "transactional_id", limits.transactional_id_length_max),
        prefix=_text(request, "transactional_id_prefix", limits.transactional_id_length_max),
        producer_id=require_int("producer_id", request.producer_id) or None,
        producer_epoch=require_int("producer_epoch", request.producer_epoch)
        if request.HasField("producer_epoch")
        else None,
        from_ms=require_int("from_time_ms", request.from_time_ms),
        before_ms=require_int("before_time_ms", request.before_time_ms) or None,
        topic_id=_text(request, "topic_id", limits.topic_id_length_max),
        partition=require_int("partition", request.partition)
        if request.HasField("partition")
        else None,
        group_id=_text(request, "group_id", limits.group_id_length_max),
    )


def _text(request: wire.ListTransactionHistoryRequest, field: str, length_max: int) -> str:
    text: str = getattr(request, field)
    return require_name(field, text, length_max=length_max) if text else ""


def _entry(position: HistoryPosition, ended: EndedTransaction) -> wire.EndedTransaction:
    out = wire.EndedTransaction(
        position=str(position),
        transactional_id=ended.transactional_id,
        producer_id=ended.producer_id,
        producer_epoch=ended.producer_epoch,
        txn_version=-1 if ended.txn_version is None else ended.txn_version,
        outcome=_OUTCOMES_BACK[ended.outcome],
        start_time_ms=ended.start_ms,
        prepared_time_ms=ended.prepared_ms,
        decided_time_ms=ended.decided_ms,
        completed_time_ms=ended.completed_ms,
        participant_count=ended.participant_count,
        traceparent=ended.traceparent,
    )
    if ended.reason is not None:
        out.abort_reason = _REASONS_BACK[ended.reason]
    for each in ended.participants:
        participant = out.participants.add(commits=each.commits)
        if each.group_id:
            participant.participant.group_id = each.group_id
        else:
            participant.participant.topic_partition.topic_id = each.topic_id
            participant.participant.topic_partition.partition = each.partition
        if ended.completed_ms:
            participant.marker_time_ms = ended.completed_ms - each.acknowledged_before_ms
    if ended.client is not None:
        name, address, principal = ended.client
        out.client.name, out.client.address, out.client.principal = name, address, principal
    if ended.operator is not None:
        who = ended.operator
        out.operator.name, out.operator.reason = who.name, who.words
        out.operator.principal, out.operator.address = who.principal, who.address
    return out
