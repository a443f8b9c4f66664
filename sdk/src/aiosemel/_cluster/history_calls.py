"""The history of transactions, put together from all coordinators."""

from collections.abc import Iterable, Mapping
from functools import partial
from heapq import nlargest
from typing import NamedTuple

from aiosemel._cluster.everyone import Answers, ask_everyone
from aiosemel._cluster.from_wire import TRANSACTION_CLIENT
from aiosemel._cluster.metadata import COORDINATOR
from aiosemel._cluster.pages import pages
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster, Route
from aiosemel._cluster.transaction_calls import PAGE_MAX, REASONS, topic_id_of, topic_names
from aiosemel.errors import InvalidRequestError
from aiosemel.types.offsets import TopicPartition
from aiosemel.types.transaction_history import (
    EndedParticipant,
    EndedTransaction,
    HistoryFilter,
    TransactionHistory,
    TransactionOperator,
)
from aiosemel.types.transaction_outcomes import KnownOutcome
from semel.coordinator.v1 import history_pb2 as wire
from semel.coordinator.v1 import outcomes_pb2 as outcomes
from semel_common.wire import methods
from semel_common.wire.messages.plain_messages import PlainMessage

OUTCOMES: Mapping[outcomes.TransactionOutcome.ValueType, KnownOutcome] = {
    outcomes.TRANSACTION_OUTCOME_COMMITTED: KnownOutcome.COMMITTED,
    outcomes.TRANSACTION_OUTCOME_ABORTED: KnownOutcome.ABORTED,
}
_OUTCOME_NUMBERS = {outcome: number for number, outcome in OUTCOMES.items()}
_OPERATOR = PlainMessage(TransactionOperator, wire.TransactionOperator)
_REASON_NUMBERS = {reason: number for number, reason in REASONS.items()}


class _Part(NamedTuple):
    """The last entries of one coordinator, whether it has more, and the names of their topics."""

    entries: list[wire.EndedTransaction]
    is_cut: bool
    names: dict[str, str]


async def transaction_history(
    cluster: Cluster,
    wanted: HistoryFilter,
    *,
    behind: str | None,
    limit: int,
    deadline: Deadline,
) -> TransactionHistory:
    """Return the last ``limit`` entries that match; see ``Admin.transaction_history``.

    Each coordinator gives its last ones: as many from one of them may be all there are.
    """
    if limit < 1:
        raise InvalidRequestError(f"limit is {limit}: ask for one or more", field="limit")
    request = await _request(cluster, wanted, behind, deadline)

    async def ask(route: Route) -> _Part:
        """Ask for names at once: a coordinator that is away uses up the time until the deadline."""
        entries, is_cut = await _listed(cluster, route, request, limit, deadline)
        return _Part(entries, is_cut, await topic_names(cluster, _topic_ids(entries), deadline))

    if request.transactional_id:
        coordinator = cluster.coordinator_of(request.transactional_id)
        answers = Answers(given=(await ask(coordinator),), errors={})
    else:
        answers = await ask_everyone(cluster, COORDINATOR, ask, deadline)
    found = [entry for part in answers.given for entry in part.entries]
    names = {topic_id: name for part in answers.given for topic_id, name in part.names.items()}
    chosen = nlargest(limit, found, key=lambda entry: entry.position)
    there_is_more = len(found) > len(chosen) or any(part.is_cut for part in answers.given)
    return answers.whole(
        TransactionHistory(
            transactions=tuple(_ended(entry, names) for entry in chosen),
            behind=chosen[-1].position if there_is_more and chosen else None,
        )
    )


async def _request(
    cluster: Cluster, wanted: HistoryFilter, behind: str | None, deadline: Deadline
) -> wire.ListTransactionHistoryRequest:
    """Make the request for one coordinator, without page and limit."""
    if wanted.partition is not None and wanted.topic is None:
        raise InvalidRequestError(
            "partition is given without its topic: give both", field="partition"
        )
    if wanted.outcome is not None and wanted.outcome not in _OUTCOME_NUMBERS:
        raise InvalidRequestError(
            f"outcome is {wanted.outcome}: give COMMITTED or ABORTED, or none", field="outcome"
        )
    request = wire.ListTransactionHistoryRequest(
        abort_reasons=[_REASON_NUMBERS[each] for each in wanted.abort_reasons],
        transactional_id=wanted.transactional_id or "",
        transactional_id_prefix=wanted.transactional_id_prefix,
        producer_id=wanted.producer_id or 0,
        producer_epoch=wanted.producer_epoch,
        from_time_ms=wanted.from_time_ms or 0,
        before_time_ms=wanted.before_time_ms or 0,
        partition=wanted.partition,
        group_id=wanted.group_id or "",
        behind=behind or "",
    )
    if wanted.outcome is not None:
        request.outcome = _OUTCOME_NUMBERS[wanted.outcome]
    if wanted.topic is not None:
        request.topic_id = await topic_id_of(cluster, wanted.topic, deadline)
    return request


async def _listed(
    cluster: Cluster,
    route: Route,
    request: wire.ListTransactionHistoryRequest,
    limit: int,
    deadline: Deadline,
) -> tuple[list[wire.EndedTransaction], bool]:
    """Return the last entries of one coordinator, and whether it has more."""

    async def ask(wanted: int, token: str) -> wire.ListTransactionHistoryResponse:
        of_page = wire.ListTransactionHistoryRequest(page_token=token, limit=wanted)
        of_page.MergeFrom(request)
        method = methods.LIST_TRANSACTION_HISTORY
        return await cluster.call(route, method, of_page, deadline=deadline)

    found: list[wire.EndedTransaction] = []
    async for page in pages(partial(ask, min(limit, PAGE_MAX))):
        found += page.transactions
        if len(found) >= limit:
            return found[:limit], len(found) > limit or bool(page.next_page_token)
    return found, False


def _topic_ids(entries: Iterable[wire.EndedTransaction]) -> set[str]:
    places = (each.participant.topic_partition for entry in entries for each in entry.participants)
    return {place.topic_id for place in places} - {""}


def _ended(entry: wire.EndedTransaction, names: dict[str, str]) -> EndedTransaction:
    return EndedTransaction(
        transactional_id=entry.transactional_id,
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        txn_version=None if entry.txn_version < 0 else entry.txn_version,
        outcome=OUTCOMES[entry.outcome],
        abort_reason=REASONS.get(entry.abort_reason),
        start_time_ms=entry.start_time_ms or None,
        prepared_time_ms=entry.prepared_time_ms or None,
        decided_time_ms=entry.decided_time_ms or None,
        completed_time_ms=entry.completed_time_ms or None,
        participants=tuple(_participant(each, names) for each in entry.participants),
        participant_count=entry.participant_count,
        traceparent=entry.traceparent,
        client=TRANSACTION_CLIENT.read(entry.client) if entry.HasField("client") else None,
        operator=_OPERATOR.read(entry.operator) if entry.HasField("operator") else None,
        position=entry.position,
    )


def _participant(each: wire.EndedParticipant, names: dict[str, str]) -> EndedParticipant:
    is_group = each.participant.HasField("group_id")
    place = each.participant.topic_partition
    name = names.get(place.topic_id, place.topic_id)
    return EndedParticipant(
        partition=None if is_group else TopicPartition(name, place.partition),
        group_id=each.participant.group_id if is_group else None,
        commits=each.commits,
        marker_time_ms=each.marker_time_ms or None,
    )
