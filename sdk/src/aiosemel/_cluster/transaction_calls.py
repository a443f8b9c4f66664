"""The questions to coordinators about transactions, of the admin client and of producers."""

from collections.abc import Iterable, Mapping
from itertools import chain

from aiosemel._answers.refusals import raise_refusal
from aiosemel._cluster import from_wire
from aiosemel._cluster.everyone import ask_everyone
from aiosemel._cluster.metadata import COORDINATOR, topics_in
from aiosemel._cluster.metadata_cache import TOPICS_IN_REQUEST
from aiosemel._cluster.pages import pages
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster, Route
from aiosemel.errors import InvalidRequestError
from aiosemel.types.descriptions import TransactionalIdDescription, TransactionListing
from aiosemel.types.transaction_outcomes import (
    AbortReason,
    KnownOutcome,
    TransactionOutcomeDescription,
)
from semel.coordinator.v1 import outcomes_pb2 as wire
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.coordinator.v1.cluster_pb2 import MetadataRequest
from semel_common.wire import methods

PAGE_MAX = 10_000
"""The most entries that one answer may be asked for."""
OUTCOMES: Mapping[int, KnownOutcome] = {
    wire.TRANSACTION_OUTCOME_COMMITTED: KnownOutcome.COMMITTED,
    wire.TRANSACTION_OUTCOME_ABORTED: KnownOutcome.ABORTED,
    wire.TRANSACTION_OUTCOME_ONGOING: KnownOutcome.ONGOING,
    wire.TRANSACTION_OUTCOME_PREPARED: KnownOutcome.PREPARED,
    wire.TRANSACTION_OUTCOME_TOO_OLD_TO_KNOW: KnownOutcome.TOO_OLD_TO_KNOW,
}
REASONS: Mapping[wire.AbortReason.ValueType, AbortReason] = {
    wire.ABORT_REASON_CLIENT: AbortReason.CLIENT,
    wire.ABORT_REASON_TIMED_OUT: AbortReason.TIMED_OUT,
    wire.ABORT_REASON_FENCED: AbortReason.FENCED,
    wire.ABORT_REASON_OPERATOR: AbortReason.OPERATOR,
}


async def get_outcome(
    cluster: Cluster,
    *,
    transactional_id: str | None,
    producer_id: int | None,
    producer_epoch: int,
    deadline: Deadline,
) -> TransactionOutcomeDescription:
    """Ask for an outcome; see ``Admin.get_transaction_outcome``."""
    if transactional_id is not None:
        route = cluster.coordinator_of(transactional_id)
    elif producer_id is not None:
        route = cluster.coordinator_of_producer(producer_id)
    else:
        raise InvalidRequestError("neither transactional_id nor producer_id is given")
    request = wire.GetTransactionOutcomeRequest(
        transactional_id=transactional_id or "",
        producer_id=producer_id or 0,
        producer_epoch=producer_epoch,
    )
    answer = await cluster.call(route, methods.GET_TRANSACTION_OUTCOME, request, deadline=deadline)
    outcome = OUTCOMES[answer.outcome]
    return TransactionOutcomeDescription(
        transactional_id=answer.transactional_id,
        producer_id=answer.producer_id,
        producer_epoch=producer_epoch,
        outcome=outcome,
        abort_reason=REASONS.get(answer.abort_reason),
        is_complete=answer.complete,
        current_epoch=answer.current_epoch if answer.current_epoch >= 0 else None,
        time_left_ms=answer.time_left_ms if outcome is KnownOutcome.ONGOING else None,
    )


async def list_transactions(
    cluster: Cluster,
    request: transactions.ListTransactionsRequest,
    deadline: Deadline,
    *,
    limit: int | None = None,
) -> tuple[TransactionListing, ...]:
    """Ask all coordinators for the first entries of the request's order; see ``Admin``.

    Each coordinator gives its first ones: as many from one of them may be all there are.
    """
    if limit is not None and limit < 1:
        raise InvalidRequestError(f"limit is {limit}: ask for one or more", field="limit")
    answers = await ask_everyone(
        cluster,
        COORDINATOR,
        lambda route: _listed(cluster, route, request, limit, deadline),
        deadline,
    )
    found = list(chain.from_iterable(answers.given))
    found.sort(key=_place_by_age if request.order else _place_by_id)
    return answers.whole(tuple(map(from_wire.transaction_listing, found[:limit])))


async def _listed(
    cluster: Cluster,
    route: Route,
    request: transactions.ListTransactionsRequest,
    limit: int | None,
    deadline: Deadline,
) -> list[transactions.TransactionListing]:
    """Return the entries of one coordinator; with a limit, its first ones.

    A coordinator of an older release knows neither order nor positions: it gives its whole list.
    """

    async def ask(token: str) -> transactions.ListTransactionsResponse:
        of_page = transactions.ListTransactionsRequest(
            page_token=token, limit=0 if limit is None else min(limit, PAGE_MAX)
        )
        of_page.MergeFrom(request)
        return await cluster.call(route, methods.LIST_TRANSACTIONS, of_page, deadline=deadline)

    found: list[transactions.TransactionListing] = []
    async for page in pages(ask):
        found += page.transactions
        has_positions = all(entry.position for entry in page.transactions)
        if request.behind and not has_positions:
            raise InvalidRequestError(
                f"behind is {request.behind[:80]!r}, and a coordinator of an older release cannot"
                " go on behind an entry: list all",
                field="behind",
            )
        if limit is not None and len(found) >= limit and has_positions:
            return found
    return found


def _place_by_id(entry: transactions.TransactionListing) -> tuple[str, int]:
    return entry.transactional_id, entry.producer_epoch


def _place_by_age(entry: transactions.TransactionListing) -> tuple[bool, int, str, int]:
    is_idle = not entry.start_time_ms
    return is_idle, entry.start_time_ms, entry.transactional_id, entry.producer_epoch


async def describe_transactions(
    cluster: Cluster, transactional_id: str, deadline: Deadline
) -> TransactionalIdDescription:
    """Return one transactional id with its transactions."""
    response = await cluster.call(
        cluster.coordinator_of(transactional_id),
        methods.DESCRIBE_TRANSACTIONS,
        transactions.DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        deadline=deadline,
        check=lambda answer: raise_refusal(answer.descriptions),
    )
    (described,) = response.descriptions
    return from_wire.transactional_id(described, await _topic_names(cluster, described, deadline))


async def _topic_names(
    cluster: Cluster, described: transactions.TransactionalIdDescription, deadline: Deadline
) -> dict[str, str]:
    """Return the names of the topics that transactions wrote to, by id."""
    return await topic_names(
        cluster,
        {
            topic.topic_id
            for transaction in described.transactions
            for named in (transaction.participants, transaction.missing_markers)
            for topic in named.topics
        },
        deadline,
    )


async def topic_id_of(cluster: Cluster, topic: str, deadline: Deadline) -> str:
    """Return the id of a topic; of a name that no topic has, the text itself: it may be an id."""
    response = await cluster.call(
        cluster.any_coordinator(),
        methods.METADATA,
        MetadataRequest(topics=[topic]),
        deadline=deadline,
    )
    return next((found.topic_id for found in topics_in(response)), topic)


async def topic_names(cluster: Cluster, ids: Iterable[str], deadline: Deadline) -> dict[str, str]:
    """Return the names of those topics that are there, by id."""
    wanted = sorted(ids)
    names: dict[str, str] = {}
    for start in range(0, len(wanted), TOPICS_IN_REQUEST):
        request = MetadataRequest(topic_ids=wanted[start : start + TOPICS_IN_REQUEST])
        response = await cluster.call(
            cluster.any_coordinator(), methods.METADATA, request, deadline=deadline
        )
        names |= {topic.topic_id: topic.name for topic in topics_in(response)}
    return names
