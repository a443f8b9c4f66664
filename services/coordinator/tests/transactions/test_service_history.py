"""The service: what it lists of transactions that have ended."""

from functools import partial

import pytest
from transactions_harness import A0, A1, B0, GROUP, NOW_MS
from transactions_on_the_move import moved_image
from transactions_requests import add, ask, complete, prepare
from transactions_service_harness import TRACEPARENT, Cluster, Coordinator, until

from semel.coordinator.v1 import history_pb2 as wire
from semel.coordinator.v1 import outcomes_pb2 as outcomes
from semel_common.errors import InvalidRequestError, NotCoordinatorError
from semel_coordinator.transactions.machine import TransactionKey
from semel_runtime.cluster.metadata_image import PartitionLeader


async def history(
    coordinator: Coordinator, **fields: object
) -> wire.ListTransactionHistoryResponse:
    request = wire.ListTransactionHistoryRequest(**fields)  # type: ignore[arg-type]  # what a test gives
    response = await ask(coordinator, request)
    assert isinstance(response, wire.ListTransactionHistoryResponse)
    return response


async def end_all(coordinator: Coordinator, count: int, *, commit: bool = True) -> TransactionKey:
    """End some transactions of the id, with their markers; return the next one."""
    key = await coordinator.init()
    for _ in range(count):
        ended, key = key, await coordinator.end(key, A0, commit=commit)
        await until(partial(coordinator.machine.markers.is_complete, ended))
    return key


async def test_an_entry_says_when_each_participant_had_its_marker(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        cluster.broker_1.open.clear()
        await coordinator.end(key, A0, B0, A1, GROUP)
        await until(lambda: coordinator.markers.missing(key) == {A1})
        cluster.clock.advance(10)
        cluster.broker_1.open.set()
        await until(lambda: coordinator.machine.markers.is_complete(key))
        (entry,) = (await history(coordinator)).transactions
    assert (entry.transactional_id, entry.producer_id, entry.producer_epoch) == ("app", *key)
    assert entry.outcome == outcomes.TRANSACTION_OUTCOME_COMMITTED
    assert entry.abort_reason == outcomes.ABORT_REASON_UNSPECIFIED
    assert (entry.start_time_ms, entry.decided_time_ms) == (NOW_MS, NOW_MS)
    assert (entry.prepared_time_ms, entry.completed_time_ms) == (0, NOW_MS + 10)
    assert (entry.txn_version, entry.participant_count) == (-1, 4)
    assert entry.traceparent == TRACEPARENT
    assert (entry.client.name, entry.client.principal) == ("one", "User:ANONYMOUS")
    assert not entry.HasField("operator")
    places = [each.participant for each in entry.participants]
    assert [each.topic_partition.partition for each in places] == [0, 1, 0, 0]
    assert places[3].group_id == "group-g"
    assert all(each.commits for each in entry.participants)
    last = entry.participants[1].marker_time_ms
    assert last == entry.completed_time_ms
    assert all(0 < each.marker_time_ms <= last for each in entry.participants)


async def test_the_history_survives_a_restart(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        await end_all(coordinator, 3)
        await coordinator.runner.run(coordinator.machine.give_producer_id)
        before = await history(coordinator)
    assert [entry.producer_epoch for entry in before.transactions] == [2, 1, 0]
    async with cluster.coordinator() as coordinator:
        assert await history(coordinator) == before


async def test_an_abort_of_an_operator_says_who_and_why(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await ask(coordinator, add(producer_id=key.producer_id))
        await ask(
            coordinator,
            outcomes.AbortTransactionRequest(
                transactional_id="app",
                producer_id=key.producer_id,
                producer_epoch=key.producer_epoch,
                operator=outcomes.Operator(name="ada", reason="it hangs"),
            ),
        )
        await until(lambda: coordinator.machine.markers.is_complete(key))
        (entry,) = (await history(coordinator)).transactions
    assert entry.outcome == outcomes.TRANSACTION_OUTCOME_ABORTED
    assert entry.abort_reason == outcomes.ABORT_REASON_OPERATOR
    assert (entry.operator.name, entry.operator.reason) == ("ada", "it hangs")
    assert entry.operator.principal == "User:ANONYMOUS"


@pytest.mark.parametrize("named", [True, False])
async def test_a_completion_by_hand_says_who_and_why(cluster: Cluster, *, named: bool) -> None:
    operator = outcomes.Operator(name="ada", reason="the bank has paid") if named else None
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await ask(coordinator, add(producer_id=key.producer_id))
        await ask(coordinator, prepare(producer_id=key.producer_id))
        await ask(coordinator, complete(producer_id=key.producer_id, operator=operator))
        await until(lambda: coordinator.machine.markers.is_complete(key))
        (entry,) = (await history(coordinator)).transactions
    assert entry.outcome == outcomes.TRANSACTION_OUTCOME_COMMITTED
    words = ("ada", "the bank has paid") if named else ("", "")
    assert (entry.operator.name, entry.operator.reason) == words
    assert entry.operator.principal == "User:ANONYMOUS"


async def test_pages_follow_one_another_while_more_transactions_end(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        await end_all(coordinator, 5)
        first = await history(coordinator, limit=2)
        key = TransactionKey(first.transactions[0].producer_id, 5)
        await coordinator.end(key, A0)
        await until(lambda: coordinator.machine.markers.is_complete(key))
        second = await history(coordinator, limit=2, page_token=first.next_page_token)
        last = await history(coordinator, limit=2, page_token=second.next_page_token)
        behind = await history(coordinator, behind=first.transactions[-1].position)
    epochs = [
        [entry.producer_epoch for entry in page.transactions]
        for page in (first, second, last, behind)
    ]
    assert epochs == [[4, 3], [2, 1], [0], [2, 1, 0]]
    assert not last.next_page_token


async def test_filters_of_a_request_are_those_of_the_machine(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await end_all(coordinator, 1)
        cluster.clock.advance(10)
        await coordinator.end(key, B0, GROUP, commit=False)
        await until(lambda: coordinator.machine.markers.is_complete(key))
        asked: dict[str, dict[str, object]] = {
            "outcome": {"outcome": outcomes.TRANSACTION_OUTCOME_COMMITTED},
            "reason": {"abort_reasons": [outcomes.ABORT_REASON_CLIENT]},
            "other reason": {"abort_reasons": [outcomes.ABORT_REASON_FENCED]},
            "id": {"transactional_id": "app"},
            "prefix": {"transactional_id_prefix": "b"},
            "producer": {"producer_id": key.producer_id, "producer_epoch": 0},
            "from": {"from_time_ms": NOW_MS + 10},
            "before": {"before_time_ms": NOW_MS + 10},
            "topic": {"topic_id": "topic-a"},
            "partition": {"topic_id": "topic-a", "partition": 1},
            "group": {"group_id": "group-g"},
        }
        found = {
            what: [e.producer_epoch for e in (await history(coordinator, **fields)).transactions]
            for what, fields in asked.items()
        }
    assert found == {
        "outcome": [0],
        "reason": [1],
        "other reason": [],
        "id": [1, 0],
        "prefix": [],
        "producer": [0],
        "from": [1],
        "before": [0],
        "topic": [0],
        "partition": [],
        "group": [1],
    }


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"outcome": outcomes.TRANSACTION_OUTCOME_ONGOING}, "outcome"),
        ({"abort_reasons": [0]}, r"abort_reasons\[0\]"),
        ({"abort_reasons": [1] * 5}, "abort_reasons"),
        ({"producer_id": -1}, "producer_id is -1"),
        ({"producer_epoch": -1}, "producer_epoch is -1"),
        ({"partition": -1}, "partition is -1"),
        ({"from_time_ms": -1}, "from_time_ms is -1"),
        ({"before_time_ms": -1}, "before_time_ms is -1"),
        ({"limit": 10_001}, "limit is 10001"),
        ({"behind": "yesterday"}, "behind is 'yesterday'"),
        ({"behind": "1-2-3-4"}, "behind is '1-2-3-4'"),
        ({"page_token": "x"}, "page_token is 'x'"),
        ({"transactional_id_prefix": "x" * 256}, "transactional_id_prefix"),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused(
    cluster: Cluster, fields: dict[str, object], text: str
) -> None:
    async with cluster.coordinator() as coordinator:
        with pytest.raises(InvalidRequestError, match=text):
            await history(coordinator, **fields)


async def test_an_id_of_another_coordinator_is_refused(cluster: Cluster) -> None:
    cluster.image = moved_image(PartitionLeader(1, 1))
    async with cluster.coordinator() as coordinator:
        with pytest.raises(NotCoordinatorError):
            await history(coordinator, transactional_id="app")
        assert not (await history(coordinator)).transactions
