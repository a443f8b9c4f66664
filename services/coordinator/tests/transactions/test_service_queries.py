"""The service: inquiries of participants, and what operators see."""

import pytest
from transactions_harness import A0, A1, GROUP, TIMEOUT_MS, after
from transactions_requests import ask, init, inquire, topics
from transactions_service_harness import TRACEPARENT, Cluster, Coordinator, until

from semel.common.v1 import errors_pb2, participants_pb2
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import (
    InconsistentClusterIdError,
    InvalidRequestError,
)
from semel_coordinator.transactions.machine import TransactionKey, TransactionLimits


async def test_an_inquiry_of_another_cluster_is_refused(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        with pytest.raises(InconsistentClusterIdError, match="'test-cluster', not to ''"):
            await ask(coordinator, wire.InquireTransactionsRequest())


async def test_inquiries_are_answered_in_the_order_asked(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0)
        request = inquire(producer_id=key.producer_id)
        request.inquiries.add(
            producer_id=key.producer_id,
            producer_epoch=1,
            participant=participants_pb2.Participant(group_id="group-g"),
        )
        request.inquiries.add(
            producer_id=key.producer_id + 1,
            participant=participants_pb2.Participant(group_id="group-g"),
        )
        response = await ask(coordinator, request)
        assert isinstance(response, wire.InquireTransactionsResponse)
        committed, ongoing, invented = response.answers
        assert committed.outcome == wire.INQUIRY_OUTCOME_COMMITTED
        assert committed.coordinator_epoch == 1
        assert ongoing.outcome == wire.INQUIRY_OUTCOME_ONGOING
        assert ongoing.time_left_ms == TIMEOUT_MS
        assert invented.outcome == wire.INQUIRY_OUTCOME_NEVER_GIVEN
        assert invented.current_epoch == -1


async def test_an_answer_that_says_later_says_why(cluster: Cluster) -> None:
    limits = TransactionLimits(transactions_max=0)
    async with cluster.coordinator(limits=limits) as coordinator:
        key = await coordinator.init()
        response = await ask(coordinator, inquire(producer_id=key.producer_id))
        assert isinstance(response, wire.InquireTransactionsResponse)
        (later,) = response.answers
        assert later.outcome == wire.INQUIRY_OUTCOME_LATER
        assert later.error.code == errors_pb2.ERROR_CODE_THROTTLING_QUOTA_EXCEEDED


async def test_an_outcome_that_is_not_known_is_answered_after_a_commit(cluster: Cluster) -> None:
    """So that a deposed owner cannot answer it."""
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key)
        commits = coordinator.runner.stats().commits
        await ask(coordinator, inquire(producer_id=key.producer_id))
        assert coordinator.runner.stats().commits == commits + 1


async def describe(coordinator: Coordinator) -> wire.TransactionalIdDescription:
    request = wire.DescribeTransactionsRequest(transactional_ids=["app"])
    response = await ask(coordinator, request)
    assert isinstance(response, wire.DescribeTransactionsResponse)
    return response.descriptions[0]


async def test_a_description_names_the_markers_that_are_missing(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        cluster.broker_0.open.clear()
        await coordinator.end(key, A0, A1)
        await until(lambda: coordinator.markers.missing(key) == {A0})
        described = await describe(coordinator)
        assert (described.producer_id, described.producer_epoch) == after(key)
        assert described.transaction_timeout_ms == TIMEOUT_MS
        decided, current = described.transactions
        assert decided.state == wire.TRANSACTION_STATE_PREPARE_COMMIT
        assert decided.participants.topics == topics(0, 1)
        assert decided.missing_markers.topics == topics(0)
        assert decided.start_time_ms == cluster.clock.now_ms()
        assert decided.decided_time_ms == cluster.clock.now_ms()
        assert current.decided_time_ms == 0
        assert current.state == wire.TRANSACTION_STATE_EMPTY
        assert not current.missing_markers.topics


async def test_markers_are_missing_to_all_before_any_was_sent(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0, GROUP, commit=False)
    async with cluster.coordinator(send=False) as coordinator:
        (decided, _) = (await describe(coordinator)).transactions
        assert decided.missing_markers == decided.participants
        assert decided.abort_reason == "CLIENT"
        assert decided.traceparent == TRACEPARENT


async def test_no_marker_is_missing_once_all_are_acknowledged(cluster: Cluster) -> None:
    """Even if the completion is not written yet."""
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0)
        await until(lambda: coordinator.machine.markers.is_complete(key))
        assert coordinator.markers.missing(key) == set()


async def test_an_id_that_is_not_there_is_described_as_an_error(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        described = await describe(coordinator)
        assert described.error.code == errors_pb2.ERROR_CODE_TRANSACTIONAL_ID_NOT_FOUND


async def listed(coordinator: Coordinator, request: wire.ListTransactionsRequest) -> list[str]:
    response = await ask(coordinator, request)
    assert isinstance(response, wire.ListTransactionsResponse)
    return [transaction.transactional_id for transaction in response.transactions]


async def test_a_list_is_ordered_and_filtered(cluster: Cluster) -> None:
    """C-107."""
    async with cluster.coordinator(send=False) as coordinator:
        for name in ("b", "ab", "a"):
            await ask(coordinator, init(transactional_id=name))
        key = await coordinator.init()
        await coordinator.end(key, A0)
        cluster.clock.advance(10)
        request = wire.ListTransactionsRequest
        assert await listed(coordinator, request()) == ["a", "ab", "app", "b"]
        pattern = "a.?|c"
        assert await listed(coordinator, request(transactional_id_pattern=pattern)) == ["a", "ab"]
        state = wire.TRANSACTION_STATE_PREPARE_COMMIT
        assert await listed(coordinator, request(states=[state])) == ["app"]
        assert await listed(coordinator, request(producer_ids=[key.producer_id])) == ["app"]
        assert await listed(coordinator, request(running_longer_than_ms=9)) == ["app"]
        assert await listed(coordinator, request(running_longer_than_ms=10)) == []


async def test_a_listing_counts_the_transactions_that_wait_for_markers(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0)
        await coordinator.end(after(key), A0, commit=False)
        response = await ask(coordinator, wire.ListTransactionsRequest())
        assert isinstance(response, wire.ListTransactionsResponse)
        (listing,) = response.transactions
        assert listing == wire.TransactionListing(
            transactional_id="app",
            producer_id=key.producer_id,
            producer_epoch=2,
            state=wire.TRANSACTION_STATE_PREPARE_ABORT,
            start_time_ms=cluster.clock.now_ms(),
            incomplete_transactions=2,
            transaction_timeout_ms=TIMEOUT_MS,
            last_update_time_ms=cluster.clock.now_ms(),
            position=f"{cluster.clock.now_ms()}-2-app",
        )


async def test_a_list_comes_in_pages_that_a_change_does_not_upset(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        for name in ("d", "b", "a", "c"):
            await ask(coordinator, init(transactional_id=name))
        request = wire.ListTransactionsRequest(limit=2)
        first = await ask(coordinator, request)
        assert isinstance(first, wire.ListTransactionsResponse)
        assert [transaction.transactional_id for transaction in first.transactions] == ["a", "b"]
        for name in ("aa", "cc"):
            await ask(coordinator, init(transactional_id=name))
        request.page_token = first.next_page_token
        second = await ask(coordinator, request)
        assert isinstance(second, wire.ListTransactionsResponse)
        assert [transaction.transactional_id for transaction in second.transactions] == ["c", "cc"]
        request.page_token = second.next_page_token
        last = await ask(coordinator, request)
        assert isinstance(last, wire.ListTransactionsResponse)
        assert [transaction.transactional_id for transaction in last.transactions] == ["d"]
        assert not last.next_page_token
        request = wire.ListTransactionsRequest(transactional_id_pattern="[ab]", limit=1)
        assert await listed(coordinator, request) == ["a"]


async def test_all_entries_of_one_id_are_on_one_page(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await ask(
            coordinator,
            wire.PrepareTxnRequest(
                transactional_id="app", producer_id=key.producer_id, producer_epoch=0
            ),
        )
        await ask(coordinator, init(transactional_id="zoo"))
        request = wire.ListTransactionsRequest(limit=1)
        first = await ask(coordinator, request)
        assert isinstance(first, wire.ListTransactionsResponse)
        assert [transaction.transactional_id for transaction in first.transactions] == [
            "app",
            "app",
        ]
        assert first.next_page_token.endswith("app")


@pytest.mark.parametrize("limit", [-1, 10_001])
async def test_a_page_of_no_possible_size_is_refused(cluster: Cluster, limit: int) -> None:
    async with cluster.coordinator() as coordinator:
        with pytest.raises(InvalidRequestError, match=f"limit is {limit}"):
            await ask(coordinator, wire.ListTransactionsRequest(limit=limit))


async def test_a_restart_keeps_every_answer(cluster: Cluster) -> None:
    """C-035, C-100: the same journal, another process."""
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0)
    async with cluster.coordinator(send=False) as coordinator:
        assert await coordinator.init() == key
        assert await coordinator.end(key, A0) == after(key)
        assert coordinator.machine.current_epoch(key.producer_id) == 1
        assert key == TransactionKey(key.producer_id, 0)


async def test_lists_take_turns_and_no_call_of_a_producer_does(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        in_turns = [each.method.name for each in coordinator.handlers() if each.turns is not None]
        assert sorted(in_turns) == [
            "DescribeTransactions",
            "ListAudit",
            "ListTransactionHistory",
            "ListTransactions",
        ]
